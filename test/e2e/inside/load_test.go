package inside

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// ledger is what everybody outside the server knows.
type ledger struct {
	mu       sync.Mutex      // guards what follows
	accepted map[string]bool // jobs whose enqueue was answered
	asked    map[string]bool // that somebody wanted to settle
	over     map[string]bool // whose settle was answered
	wrong    []string
	refusals map[string]int // by what was said
	answers  counter
	latest   func() int64 // the latest date that anybody saw; nil = no job waits for one
}

func newLedger() *ledger {
	return &ledger{accepted: map[string]bool{}, asked: map[string]bool{}, over: map[string]bool{}, refusals: map[string]int{}}
}

func (l *ledger) violation(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

// note keeps what was answered.
func (l *ledger) note(set map[string]bool, ids ...string) {
	l.mu.Lock()
	for _, id := range ids {
		set[id] = true
	}
	l.mu.Unlock()
	l.answers.add()
}

// member does one thing to a server, and says whether it was taken.
type member func(ctx context.Context, s *stack, rng *rand.Rand) bool

// work loads a server until the returned function is called, which waits until
// every request has its answer.
func (l *ledger) work(s *stack, rng *rand.Rand, more ...member) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, member := range append([]member{l.produce, l.produce, l.produce, l.consume, l.look}, more...) {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 1))
		all.Go(func() {
			again := time.NewTicker(5 * time.Millisecond)
			defer again.Stop()
			for ctx.Err() == nil {
				if !member(ctx, s, mine) { // refused: come again in a moment
					<-again.C
				}
			}
		})
	}
	return func() { cancel(); all.Wait(); s.client.CloseIdleConnections() }
}

// refused checks the refusal of a server whose disk fails: for now, and said
// so that a client knows it. Answers that never came whole are no refusals.
func (l *ledger) refused(call string, r reply, err error) {
	if err != nil {
		return
	}
	var e wire.Error
	if json.Unmarshal(r.body, &e) != nil || r.status != http.StatusServiceUnavailable || e.Code != wire.CodeUnavailable || e.Error == "" {
		l.violation("%s was answered with %s", call, r)
	}
	l.mu.Lock()
	l.refusals[e.Error]++
	l.mu.Unlock()
}

// produce enqueues one job or a few.
func (l *ledger) produce(_ context.Context, s *stack, rng *rand.Rand) bool {
	body := fmt.Sprintf(`{"type":"t","queue":"q%d","payload":"%s"%s}`, rng.IntN(3), strings.Repeat("x", 1+rng.IntN(2000)), l.date(rng))
	if rng.IntN(2) == 0 {
		r, err := s.call("POST", "/jobs", body) //nolint:contextcheck // a call has a patience of its own
		var added wire.Enqueued
		if err != nil || r.status != http.StatusCreated || json.Unmarshal(r.body, &added) != nil {
			l.refused("an enqueue", r, err)
			return false
		}
		l.note(l.accepted, added.ID)
		return true
	}
	jobs := slices.Repeat([]string{body}, 1+rng.IntN(20))
	r, err := s.call("POST", "/jobs/bulk", `{"jobs":[`+strings.Join(jobs, ",")+`]}`) //nolint:contextcheck // a call has a patience of its own
	var added wire.BulkEnqueued
	if err != nil || r.status != http.StatusCreated || json.Unmarshal(r.body, &added) != nil {
		l.refused("a bulk", r, err)
		return false
	}
	var ids []string
	for _, j := range added.Jobs {
		ids = append(ids, j.ID)
	}
	l.note(l.accepted, ids...)
	return true
}

// date says of every other job when it is due, if jobs have dates.
func (l *ledger) date(rng *rand.Rand) string {
	if l.latest == nil || rng.IntN(2) == 0 {
		return ""
	}
	return fmt.Sprintf(`,"ready_at":%d`, l.latest()+rng.Int64N(30*int64(job.Day)))
}

// early reports whether a job is given out before its date was ever reached.
func (l *ledger) early(j wire.Job) bool { return l.latest != nil && j.ReadyAt > l.latest() }

// consume takes jobs until the stream ends, and settles two thirds of them.
func (l *ledger) consume(ctx context.Context, s *stack, rng *rand.Rand) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/jobs/take?prefetch=20&queue=q0,q1", nil)
	if err != nil {
		return false
	}
	res, err := s.client.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		if err == nil {
			_ = res.Body.Close()
		}
		return false
	}
	defer func() { _ = res.Body.Close() }()
	for lines := bufio.NewReader(res.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return false
		}
		var j wire.Job
		if len(line) < 2 {
			continue
		}
		if json.Unmarshal(line, &j) != nil {
			l.violation("a stream delivered %.100q", line)
		}
		l.delivered(j)
		switch r, err := s.call("POST", "/jobs/"+j.ID+"/success", ""); { //nolint:contextcheck // a call has a patience of its own
		case err == nil && r.status == http.StatusNoContent:
			l.note(l.over, j.ID)
		case err == nil && r.status == http.StatusNotFound: // settled by a request without an answer
		default:
			l.refused("a success", r, err)
		}
		if rng.IntN(100) == 0 {
			return true // and connects again
		}
	}
}

// delivered checks a delivery, whose job will be settled.
func (l *ledger) delivered(j wire.Job) {
	if l.early(j) {
		l.violation("job %s, due at %d, was given out at %d", j.ID, j.ReadyAt, l.latest())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over[j.ID] {
		l.wrong = append(l.wrong, "job "+j.ID+" was given out after its settle had been acknowledged")
	}
	l.asked[j.ID] = true
}

// look reads jobs one by one, also from disk.
func (l *ledger) look(_ context.Context, s *stack, rng *rand.Rand) bool {
	l.mu.Lock()
	var id string
	skip := rng.IntN(50)
	for id = range l.accepted { // maps have no order of their own
		if skip--; skip < 0 {
			break
		}
	}
	l.mu.Unlock()
	if id == "" {
		return false
	}
	r, err := s.call("GET", "/jobs/"+id, "") //nolint:contextcheck // a call has a patience of its own
	l.mu.Lock()
	mayBeGone := l.asked[id]
	l.mu.Unlock()
	switch {
	case err != nil, r.status == http.StatusOK:
	case r.status == http.StatusNotFound:
		if !mayBeGone {
			l.violation("job %s was acknowledged, and is not found", id)
		}
	default:
		l.refused("a look", r, err)
	}
	return false // now and then is enough
}

// audit holds what a server has against the ledger, while nobody works.
func (l *ledger) audit(s *stack) {
	s.t.Helper()
	there := map[string]wire.Job{}
	for path := "/jobs?limit=2000"; path != ""; {
		var page wire.Page
		s.must(http.StatusOK, &page, "GET", path, "")
		for _, j := range page.Jobs {
			there[j.ID] = j
		}
		if path = ""; page.Pages.Next != nil {
			path = *page.Pages.Next
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fault := range l.wrong {
		s.t.Error(fault)
	}
	l.wrong = nil
	lost, back := 0, 0
	for id := range l.accepted {
		j, is := there[id]
		switch {
		case l.over[id] && is:
			back++
		case !is && !l.asked[id]:
			lost++
		case is && (j.Attempts != 0 || j.Status != wire.Ready && j.Status != wire.InFlight && (j.Status != wire.Scheduled || l.latest == nil)):
			s.t.Errorf("job %s is %s with %d attempts", id, j.Status, j.Attempts)
		}
		if is && !l.over[id] {
			delete(l.asked, id) // whatever was on its way is over: it is there
		} else if !is {
			delete(l.accepted, id)
			delete(l.over, id)
		}
	}
	if lost+back > 0 {
		s.t.Errorf("%d acknowledged jobs are lost, %d that were settled are there again", lost, back)
	}
}
