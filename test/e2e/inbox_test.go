package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	reprise "github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// TestOrderIsKeptThroughKillNine kills a server again and again while it
// delivers messages in order to an endpoint that is not always ready. Of each
// group the endpoint gets every message that was accepted, in its order, and
// again only what it had taken when the server died (spec/inbox.md 1, 3, 6, I5).
func TestOrderIsKeptThroughKillNine(t *testing.T) {
	told(t)
	t.Parallel()
	const groups, each, kills = 24, 25, 3
	e := newEndpoint(dice(41))
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "reprise.yaml"), `
inboxes:
  orders:
    group: {json: .order}
    deliver: {http: {url: "`+e.server.URL+`/in", concurrent: 8}}
    batch: {mode: fail_first, query: {pollInitialDelay: 0s, pollInterval: 200ms}}
    message: {timeToLive: 10m}
`)
	s := start(t, filepath.Join(dir, "root"), "-c", config)
	again := []string{"-c", config, "--port", s.port()}

	var sending sync.WaitGroup
	accepted := make([][]string, groups)
	for g := range groups {
		sending.Go(func() { accepted[g] = sendAll(t, s.url, g, each) })
	}
	for k := 1; k <= kills; k++ {
		until(t, fmt.Sprintf("delivery before kill %d", k), func() (bool, string) {
			n := e.taken()
			return n >= k*groups*each/(kills+2), fmt.Sprint(n, " are taken")
		})
		s.kill()
		s = start(t, filepath.Join(dir, "root"), again...)
	}
	sending.Wait()
	until(t, "all of it", func() (bool, string) {
		n := e.different()
		return n == groups*each, fmt.Sprint(n, " of ", groups*each, " are taken")
	})
	for g := range groups {
		if len(accepted[g]) != each {
			t.Fatalf("group %d: %d accepted", g, len(accepted[g]))
		}
		if why := e.wrong(fmt.Sprint("g", g), each, kills); why != "" {
			t.Errorf("group %d: %s", g, why)
		}
	}
	var x wire.Inbox
	c := dial(s.url)
	until(t, "an empty inbox", func() (bool, string) {
		c.must(t, 200, &x, "GET", "/inboxes/orders", nil)
		return x.Messages.Total == 0 && x.Groups.Total == 0, fmt.Sprintf("%+v", x.Messages)
	})
	sentAgain(t, c, accepted)
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// sentAgain sends all messages once more, which were delivered by servers that were
// killed since: each is known by its id, and one with other content is a conflict.
func sentAgain(t *testing.T, c *client, ids [][]string) {
	t.Helper()
	var list, other []wire.InboxPut
	for g := range ids {
		for n := range ids[g] {
			header := map[string]string{wire.CorrelateID: messageName(g, n)}
			list = append(list, wire.InboxPut{Headers: header, Payload: messageBody(g, n)})
			other = append(other, wire.InboxPut{Headers: header, Payload: messageBody(g, n+1)})
		}
	}
	var in wire.InboxIntake
	c.must(t, 200, &in, "POST", "/inboxes/orders/messages/bulk", map[string]any{"messages": list})
	if in.Duplicates != len(list) || in.Refused != 0 {
		t.Errorf("sent again: %d of %d are duplicates, %d refused", in.Duplicates, len(list), in.Refused)
	}
	for i, a := range in.Messages {
		if want := ids[i/len(ids[0])][i%len(ids[0])]; a.ID != want || !a.Duplicate {
			t.Fatalf("sent again: %+v, and the first time it was %s", a, want)
		}
	}
	c.must(t, 200, &in, "POST", "/inboxes/orders/messages/bulk", map[string]any{"messages": other})
	if in.Refused != len(other) || in.Messages[0].Code != wire.CodeExists {
		t.Errorf("with other content: %d of %d are refused, the first with %+v", in.Refused, len(other), in.Messages[0])
	}
}

func messageName(group, n int) string { return fmt.Sprintf("g%d-%d", group, n) }

func messageBody(group, n int) json.RawMessage {
	return fmt.Appendf(nil, `{"order":"g%d","n":%d}`, group, n)
}

// sendAll sends the messages of a group in order, each until it is accepted, and
// returns the ids they got.
func sendAll(t *testing.T, url string, group, n int) (accepted []string) {
	c := dial(url)
	defer c.close()
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	deadline := time.After(2 * patience)
	for len(accepted) < n {
		at := len(accepted)
		r, err := c.do(t.Context(), "POST", "/inboxes/orders/messages", string(messageBody(group, at)), wire.CorrelateID, messageName(group, at))
		if err == nil && (r.status == 201 || r.status == 200) {
			var a wire.InboxAccepted
			if err := json.Unmarshal(r.body, &a); err != nil {
				t.Error(err)
			}
			accepted = append(accepted, a.ID)
		} else if err == nil && r.status < 500 {
			t.Errorf("message %d of group %d: %s", at, group, r)
			return accepted
		}
		select {
		case <-pace.C:
		case <-deadline:
			return accepted
		}
	}
	return accepted
}

// endpoint is a receiver of messages that refuses some of them.
type endpoint struct {
	server *httptest.Server

	mu   sync.Mutex // guards what follows
	rnd  *rand.Rand
	got  map[string][]int // numbers that were taken, by group
	runs map[string]int   // deliveries at work, by group
	bad  []string
}

func newEndpoint(rnd *rand.Rand) *endpoint {
	e := &endpoint{rnd: rnd, got: map[string][]int{}, runs: map[string]int{}}
	e.server = httptest.NewServer(http.HandlerFunc(e.take))
	return e
}

func (e *endpoint) take(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Order string
		N     int
	}
	err := json.NewDecoder(r.Body).Decode(&m)
	e.mu.Lock()
	defer e.mu.Unlock()
	if id := r.Header.Get("Reprise-Id"); err != nil || id != fmt.Sprintf("%s-%d", m.Order, m.N) || r.Header.Get("Reprise-Group") != m.Order {
		e.bad = append(e.bad, fmt.Sprintf("%s %v %v", id, m, err))
	}
	if e.rnd.IntN(12) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	e.got[m.Order] = append(e.got[m.Order], m.N)
}

func (e *endpoint) taken() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, list := range e.got {
		n += len(list)
	}
	return n
}

func (e *endpoint) different() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, list := range e.got {
		n += len(slices.Compact(slices.Sorted(slices.Values(list))))
	}
	return n
}

// wrong says what is wrong with what a group got: it must be 0, 1, 2 and so on,
// where one that was taken when the server died comes once more, right away.
func (e *endpoint) wrong(group string, n, kills int) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.bad) > 0 {
		return strings.Join(e.bad, "; ")
	}
	list, repeats := e.got[group], 0
	for i, at := range list {
		switch {
		case i == 0 && at == 0, i > 0 && at == list[i-1]+1:
		case i > 0 && at == list[i-1]:
			repeats++
		default:
			return fmt.Sprint("out of order: ", list)
		}
	}
	if repeats > kills {
		return fmt.Sprintf("%d repeats after %d kills: %v", repeats, kills, list)
	}
	if len(list) == 0 || list[len(list)-1] != n-1 {
		return fmt.Sprint("something is missing: ", list)
	}
	return ""
}

// A Go handler gets the messages of each group in order, also when it gives one
// back, and what it gives up blocks its group until an operator says so.
func TestAGoHandlerOfAnInbox(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "root"))
	c, err := reprise.New(s.url, reprise.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	settings := wire.InboxSettings{Group: wire.InboxKey{Header: "X-Hint"}, Batch: wire.InboxBatch{Mode: "fail_first", Query: json.RawMessage(`"none"`)}}
	if _, err := c.SetInbox(t.Context(), "in", settings); err != nil {
		t.Fatal(err)
	}
	var list []reprise.Message
	for i := range 30 {
		list = append(list, reprise.Message{ID: fmt.Sprint("m", i), Payload: i, Headers: map[string]string{"X-Hint": fmt.Sprint("g", i%3)}})
	}
	in, err := c.SendBulk(t.Context(), "in", list)
	if err != nil || in.Accepted != 30 || in.Refused != 0 {
		t.Fatal(in, err)
	}
	if again, err := c.Send(t.Context(), "in", list[7]); err != nil || !again.Duplicate || again.ID != in.Messages[7].ID {
		t.Errorf("%+v, %v", again, err)
	}
	list[7].Payload = "other"
	if _, err := c.Send(t.Context(), "in", list[7]); reprise.CodeOf(err) != wire.CodeExists {
		t.Errorf("%v", err)
	}

	var mu sync.Mutex
	got, back, dead := map[string][]string{}, false, false
	worker, err := reprise.NewInboxWorker(c, "in", func(_ context.Context, m *wire.InboxMessage) error {
		var n int
		if err := reprise.DecodeMessage(m, &n); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case n == 10 && !back:
			back = true
			return reprise.Release(20 * time.Millisecond)
		case n == 14 && !dead:
			dead = true
			return reprise.Dead(errors.New("no such order"))
		}
		got[m.Group] = append(got[m.Group], m.MessageID)
		return nil
	}, reprise.InboxWorkerOptions{Groups: 3})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	until(t, "two groups and the beginning of the third", func() (bool, string) {
		x, err := c.Inbox(t.Context(), "in")
		if err != nil {
			return false, err.Error()
		}
		return x.Messages.Blocking == 1 && x.Messages.InProgress == 5 && x.Messages.Total == 6 && x.Groups.Blocked == 1, fmt.Sprintf("%+v", x.Messages)
	})
	if m, err := c.Message(t.Context(), "in", "m14"); err != nil || m.Status != "blocking" || m.Error == nil || m.Error.Text != "no such order" {
		t.Errorf("%+v, %v", m, err)
	}
	if done, err := c.ActOnInbox(t.Context(), "in", wire.InboxAct{Action: "retry", Group: new("g2")}); err != nil || done.Changed != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	until(t, "the third group", func() (bool, string) {
		x, err := c.Inbox(t.Context(), "in")
		return err == nil && x.Messages.Total == 0, fmt.Sprint(x, err)
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for g := range 3 {
		var want []string
		for i := g; i < 30; i += 3 {
			want = append(want, fmt.Sprint("m", i))
		}
		if group := fmt.Sprint("g", g); !slices.Equal(got[group], want) {
			t.Errorf("group %s got %v", group, got[group])
		}
	}
	if _, err := reprise.NewInboxWorker(c, "in", nil, reprise.InboxWorkerOptions{}); err == nil {
		t.Error("a worker without a handler is made")
	}
	missing, err := reprise.NewInboxWorker(c, "none", func(context.Context, *wire.InboxMessage) error { return nil }, reprise.InboxWorkerOptions{Groups: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := missing.Run(t.Context()); reprise.CodeOf(err) != wire.CodeNotFound {
		t.Errorf("a worker of an inbox that is not there ends with %v", err)
	}
}
