package policy_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/policy"
	"github.com/reprisehq/reprise/internal/policy/picture"
)

// FuzzRead reads a policy from a query. What is refused is told by name, not
// endlessly; what is taken says the same when it is written as JSON, and is
// shown as rows whose waits are possible, in words, and as a picture that is XML.
func FuzzRead(f *testing.F) {
	for _, query := range []string{
		"", "limit=3&rows=2", "curve=list&delays=1s,2m,PT5S&jitter=%C2%B110%25", "curve=uniform&base=3s&cap=30s&limit=unlimited",
		"curve=exponential&unit=1m&factor=1.5&offset=2&jitter=full&max-age=2h", "curve=linear&step=1s&base=0&cap=1h&jitter=decorrelated",
		"base=15s&exponent=4&jitter=30s&count=including&limit=none", "curve=constant&delay=1ms&limit=4294967295&rows=1000",
		"curve=staircase&base=285616y", "exponent=1e308", "exponent=-1", "factor=null&curve=exponential", "rows=0&rows=1",
		`policy={"limit":1,"curve":{"kind":"immediate"}}`, `policy={"max_age":5}&base=1s`, "nobody=knows&n%00=1", "policy=[",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return // the handler refuses it
		}
		r, rows, err := policy.Read(values, "")
		if err != nil {
			var each job.Problems
			if job.KindOf(err) != job.Invalid || !errors.As(err, &each) || len(each) > policy.ProblemsMax || !r.IsZero() || rows != 0 {
				t.Errorf("%q: %+v, %d rows, with %.300v", query, r, rows, err)
			}
			return
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("%q was read, but: %v", query, err)
		}
		whole, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, _, err := policy.Read(url.Values{"policy": {string(whole)}}, ""); err != nil || string(mustJSON(t, again)) != string(whole) {
			t.Errorf("%q is %s, which was read as %+v, %v", query, whole, again, err)
		}
		shows(t, query, policy.Of(r, rows), rows)
	})
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func shows(t *testing.T, query string, p policy.Preview, rows int) {
	t.Helper()
	if len(p.Rows) > policy.RowsMax || rows > 0 && len(p.Rows) > rows || p.Limit != nil && int64(len(p.Rows)) > *p.Limit {
		t.Errorf("%q has %d rows", query, len(p.Rows))
	}
	before := policy.Row{}
	for _, row := range p.Rows {
		if row.Retry != before.Retry+1 || row.Min < 0 || row.Min > row.Mean || row.Mean > row.Max || row.Max > job.MaxMillis ||
			row.TotalMin < before.TotalMin || row.TotalMax < before.TotalMax || row.TotalMin > row.TotalMax || row.TotalMax > job.MaxMillis {
			t.Fatalf("%q: after %+v comes %+v", query, before, row)
		}
		before = row
	}
	var told struct{ Rows []policy.Row }
	if err := json.Unmarshal(mustJSON(t, p), &told); err != nil || len(told.Rows) != len(p.Rows) {
		t.Errorf("%q: %d rows were told as %d, %v", query, len(p.Rows), len(told.Rows), err)
	}
	if !strings.HasSuffix(p.Ending(), ".") || policy.Line(p.Retry) == "" {
		t.Errorf("%q: %q, %q", query, p.Ending(), policy.Line(p.Retry))
	}
	var drawn bytes.Buffer
	if err := picture.Preview(&drawn, p); err != nil {
		t.Fatal(err)
	}
	if text := drawn.String(); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("%q: a coordinate is no number", query)
	}
	for d := xml.NewDecoder(&drawn); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%q: the picture is no XML: %v", query, err)
		}
	}
}
