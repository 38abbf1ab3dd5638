package web

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
)

// blocks are the blocks of docs/targets.md of a kind.
func blocks(t *testing.T, kind string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/targets.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```"+kind+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		list = append(list, m[1])
	}
	return list
}

func compact(t *testing.T, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, body); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return b.String()
}

func TestATargetGetsWhatIsDocumented(t *testing.T) {
	x := newTarget(t, answerWith(200, nil, ""))
	message := connect.Message{
		ID: "03ha0vcdq3ahckzwg6czm3zp1", Attempt: 2, Type: "booked",
		Header: map[string]string{"X-Correlation-Hint": "customer-7"}, Body: []byte(`{"seats": 2}`),
	}
	single := &connect.Batch{Queue: "reservations", Group: "customer-7", Messages: []connect.Message{message}}
	message.ID = "m1"
	several := &connect.Batch{Queue: "reservations", Group: "customer-7", Stop: true, Messages: []connect.Message{
		message, {ID: "m2", Attempt: 1, ContentType: "text/plain", Body: []byte("no JSON")},
	}}
	x.sink(t, Options{URL: x.URL + "/correlate"}).Deliver(t.Context(), single)
	batches := x.sink(t, Options{URL: x.URL + "/correlate", Batch: true})
	batches.Deliver(t.Context(), several)
	list := blocks(t, "http")
	if len(list) != 2 {
		t.Fatalf("the page has %d requests", len(list))
	}
	for i, text := range list {
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Replace(text, "\n\n", "\nHost: x\nContent-Length: 100000\n\n", 1))))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(want.Body) // shorter than it says
		got := x.got[i]
		if got.Method != want.Method || got.URL.Path != want.URL.Path {
			t.Errorf("%s %s", got.Method, got.URL)
		}
		for name, value := range want.Header {
			if name != "Content-Length" && got.Header.Get(name) != value[0] {
				t.Errorf("request %d: %s is %q, documented is %q", i, name, got.Header.Get(name), value[0])
			}
		}
		for name := range got.Header {
			if strings.HasPrefix(name, "Reprise-") && want.Header.Get(name) == "" {
				t.Errorf("request %d: %s is not documented", i, name)
			}
		}
		if sent := compact(t, []byte(x.body[i])); sent != compact(t, body) {
			t.Errorf("request %d: sent is\n%s\ndocumented is\n%s", i, sent, body)
		}
	}

	answers := blocks(t, "json")
	if len(answers) != 1 {
		t.Fatalf("the page has %d answers", len(answers))
	}
	y := newTarget(t, answerWith(200, map[string]string{"Content-Type": "application/json"}, answers[0]))
	results := y.sink(t, Options{Batch: true}).Deliver(t.Context(), several)
	want := connect.Result{
		Outcome: job.Retried, RetryAfter: 30 * job.Second,
		Failure: job.Failure{Type: "NotFound", Message: "no such customer", Status: 404},
	}
	if results[0] != (connect.Result{Outcome: job.OK}) || results[1] != want {
		t.Errorf("the documented answer is taken as %+v", results)
	}
}
