package local

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

const when = 1448403340 // 2015-11-24T22:15:40Z

func now() time.Time { return time.Unix(when, 250_000_000) }

// object is the raw value of a JSON text.
func object(t testing.TB, text string) []byte {
	t.Helper()
	body, err := record.AppendFromJSON(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// chunk has one event for each JSON text, of one second.
func chunk(t testing.TB, bodies ...string) (events []byte) {
	t.Helper()
	for _, body := range bodies {
		events = record.AppendEvent(events, record.Time{Sec: when}, nil, object(t, body))
	}
	return events
}

func deliver(t testing.TB, s connect.Sink, tag string, events []byte) connect.Result {
	t.Helper()
	return s.Deliver(t.Context(), &connect.Batch{Messages: []connect.Message{{Type: tag, Body: events}}})[0]
}

var ok = connect.Result{Outcome: job.OK}

// fails is a writer that takes so many bytes.
type fails struct {
	bytes.Buffer
	left int
}

func (f *fails) Write(p []byte) (int, error) {
	n, _ := f.Buffer.Write(p[:min(len(p), f.left)])
	if f.left -= n; n < len(p) {
		return n, errors.New("it is full")
	}
	return n, nil
}

func TestStdoutIsThatOfTheOriginal(t *testing.T) {
	events := chunk(t, `{"k":"v","n":[1,2.5,{"a":null}],"q":"a\"b"}`)
	events = record.AppendEvent(events, record.Time{Sec: 1, Nsec: 5}, object(t, `{"m":true}`), object(t, `{}`))
	for format, want := range map[string]string{
		"":            `[0] a.b: [[1448403340.000000000, {}], {"k"=>"v", "n"=>[1, 2.5, {"a"=>null}], "q"=>"a\"b"}]` + "\n" + `[1] a.b: [[1.000000005, {"m"=>true}], {}]` + "\n",
		"json":        `[{"date":1448403340.0,"k":"v","n":[1,2.5,{"a":null}],"q":"a\"b"},{"date":1.000000005,"__internal__":{"log_metadata":{"m":true}}}]` + "\n",
		"json_lines":  `{"date":1448403340.0,"k":"v","n":[1,2.5,{"a":null}],"q":"a\"b"}` + "\n" + `{"date":1.000000005,"__internal__":{"log_metadata":{"m":true}}}` + "\n",
		"json_stream": `{"date":1448403340.0,"k":"v","n":[1,2.5,{"a":null}],"q":"a\"b"}{"date":1.000000005,"__internal__":{"log_metadata":{"m":true}}}` + "\n",
		"msgpack":     string(events),
	} {
		var out bytes.Buffer
		o := DefaultStdout(&out)
		o.Format = format
		s, err := NewStdout(o)
		if err != nil {
			t.Fatal(err)
		}
		if r := deliver(t, s, "a.b", events); r != ok || out.String() != want {
			t.Errorf("%q: %+v\n%s\nwant\n%s", format, r, out.String(), want)
		}
		if r := deliver(t, s, "a.b", []byte("\xc1")); r.Outcome != job.Died || r.Failure.Type != connect.TypeRecord {
			t.Errorf("broken: %+v", r)
		}
		o.Out = &fails{left: 3}
		s, _ = NewStdout(o)
		if r := deliver(t, s, "a.b", events); r.Outcome != job.Retried || !strings.Contains(r.Failure.Message, "it is full") {
			t.Errorf("full: %+v", r)
		}
	}
	_, err := NewStdout(StdoutOptions{Format: "xml", DateForm: "noon"})
	if text := fmt.Sprint(err); !strings.Contains(text, "format is \"xml\"") || !strings.Contains(text, "json_date_format is \"noon\"") {
		t.Error(text)
	}
}

func TestTheCounterCountsWhatIsWritten(t *testing.T) {
	out := &fails{left: 300}
	c := NewCounter(out, now)
	deliver(t, c, "a", chunk(t, `{}`, `{}`))
	deliver(t, c, "a", chunk(t, `{}`))
	want := `{"ts":1448403340.250000,"serialized_events":2,"log_records":2,"total":2}` + "\n" + `{"ts":1448403340.250000,"serialized_events":1,"log_records":1,"total":3}` + "\n"
	if out.String() != want {
		t.Error(out.String())
	}
	if r := deliver(t, c, "a", append(chunk(t, `{}`), 0xc1)); r.Outcome != job.Released || string(r.Parts.Rest) != string(chunk(t, `{}`)) || string(r.Parts.Pieces[0].Body) != "\xc1" {
		t.Errorf("broken: %+v", r)
	}
	out.left = 0
	if r := deliver(t, c, "a", chunk(t, `{}`)); r.Outcome != job.Retried || c.total != 3 {
		t.Errorf("%+v, %d", r, c.total)
	}
}

func TestNullTakesEverything(t *testing.T) {
	if r := deliver(t, Null{}, "a", []byte("\xc1")); r != ok {
		t.Errorf("%+v", r)
	}
}
