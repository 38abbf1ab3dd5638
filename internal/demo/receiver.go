package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// spell is a stretch of what the receiver does. Shares are of 1; what is left
// is answered 204.
type spell struct {
	name      string
	lasts     time.Duration // 0 = to the end
	down      bool          // nothing listens
	busy      float64       // answered 429 with Retry-After: 1
	broken    float64       // answered 500
	fast, top time.Duration // an answer takes between these
}

// usualWeather is hard enough that without retries most events would be lost,
// and ends by itself.
var usualWeather = []spell{
	{name: "fair", lasts: 4 * time.Second, broken: 0.15, fast: 20 * time.Millisecond, top: 80 * time.Millisecond},
	{name: "down", lasts: 4 * time.Second, down: true},
	{name: "busy (429)", lasts: 4 * time.Second, busy: 0.6, broken: 0.1, fast: 20 * time.Millisecond, top: 80 * time.Millisecond},
	{name: "slow", lasts: 4 * time.Second, broken: 0.05, fast: 150 * time.Millisecond, top: 400 * time.Millisecond},
	{name: "down again", lasts: 2 * time.Second, down: true},
	{name: "fair", broken: 0.05, fast: 10 * time.Millisecond, top: 60 * time.Millisecond},
}

// answers counts what the receiver said.
type answers struct {
	OK      int64 `json:"ok"`
	Busy    int64 `json:"busy"`    // 429
	Broken  int64 `json:"broken"`  // 500
	Invalid int64 `json:"invalid"` // 400
}

// ledger is what the receiver saw.
type ledger struct {
	answers
	delivered map[string]int // event id -> how often it was answered 2xx
}

// receiver is an HTTP server on a real port that has a bad day.
type receiver struct {
	addr    string
	weather []spell
	stop    chan struct{}
	loop    sync.WaitGroup

	mu     sync.Mutex // guards what follows
	now    spell
	rnd    *rand.Rand
	server *http.Server
	book   ledger
}

// newReceiver begins to listen, in the first weather.
func newReceiver(seed uint64, weather []spell) (*receiver, error) {
	r := &receiver{
		weather: weather, stop: make(chan struct{}),
		now: weather[0], rnd: rand.New(rand.NewPCG(seed, seed)),
		book: ledger{delivered: map[string]int{}},
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the receiver: %w", err)
	}
	r.addr = ln.Addr().String()
	r.serve(ln)
	return r, nil
}

func (r *receiver) url() string { return "http://" + r.addr + "/hooks" }

// begin lets the weather change from now on.
func (r *receiver) begin(ctx context.Context) {
	r.loop.Go(func() {
		for i, s := range r.weather {
			if i > 0 && !r.turn(ctx, s) || s.lasts == 0 {
				return
			}
			select {
			case <-time.After(s.lasts):
			case <-r.stop:
				return
			}
		}
	})
}

// turn changes the weather. It reports false when the port is gone.
func (r *receiver) turn(ctx context.Context, s spell) bool {
	r.mu.Lock()
	was := r.now
	r.now = s
	server := r.server
	r.mu.Unlock()
	switch {
	case s.down && !was.down:
		shut(ctx, server)
	case !s.down && was.down:
		ln, err := net.Listen("tcp", r.addr)
		if err != nil {
			return false // the run will not end, and says so
		}
		r.serve(ln)
	}
	return true
}

// shut closes the port. Requests under way are answered, or else the events
// would be counted here and tried again there.
func shut(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = server.Shutdown(ctx)
	_ = server.Close()
}

func (r *receiver) serve(ln net.Listener) {
	server := &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	r.loop.Go(func() { _ = server.Serve(ln) })
}

// ServeHTTP takes one event, or does not.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 16<<20))
	var event struct{ ID string }
	if err != nil || json.Unmarshal(body, &event) != nil || event.ID == "" {
		r.note(func(b *ledger) { b.Invalid++ })
		http.Error(w, "this is no event", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	s, luck, share := r.now, r.rnd.Float64(), r.rnd.Float64()
	r.mu.Unlock()
	select {
	case <-time.After(s.fast + time.Duration(share*float64(s.top-s.fast))):
	case <-req.Context().Done():
		panic(http.ErrAbortHandler) // the worker is gone: not delivered
	}
	switch {
	case luck < s.busy:
		r.note(func(b *ledger) { b.Busy++ })
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests, come back in a second", http.StatusTooManyRequests)
	case luck < s.busy+s.broken:
		r.note(func(b *ledger) { b.Broken++ })
		http.Error(w, "something broke in here", http.StatusInternalServerError)
	default:
		r.note(func(b *ledger) { b.OK++; b.delivered[event.ID]++ })
		w.WriteHeader(http.StatusNoContent)
	}
}

func (r *receiver) note(f func(*ledger)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.book)
}

// ledger returns what was seen so far.
func (r *receiver) ledger() ledger {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ledger{r.book.answers, maps.Clone(r.book.delivered)}
}

// state is how many events were delivered, and the weather.
func (r *receiver) state() (delivered int64, weather string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.book.delivered)), r.now.name
}

// close ends the receiver. It may be called once.
func (r *receiver) close(ctx context.Context) {
	close(r.stop)
	r.mu.Lock()
	server := r.server
	r.mu.Unlock()
	shut(ctx, server)
	r.loop.Wait()
}
