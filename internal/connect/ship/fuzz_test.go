package ship

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/record"
)

// FuzzBulkAnswer reads answers of bulk requests: one that is taken has an item for each record.
func FuzzBulkAnswer(f *testing.F) {
	for _, text := range []string{
		"", "{}", items(did(201, "", ""), did(400, "t", "r's")), items(did(429, "", ""), `{"create":{"status":400,"error":"x"}}`),
		`{"items":[{},[]],"items":0}`, `{"items":[{"create":{"status":1e9}},{"a":{},"b":{}}]} `,
	} {
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, created bool) {
		list, err := readBulk(strings.NewReader(text), 1<<16, 2, created)
		if err != nil {
			if list != nil {
				t.Error("items of an answer that says nothing")
			}
			return
		}
		if !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			t.Errorf("%q was taken", text)
		}
		for i, one := range list {
			if one.place > 1 || i > 0 && one.place <= list[i-1].place || one.status/100 == 2 {
				t.Errorf("%+v", one)
			}
			_ = one.failure()
		}
	})
}

// FuzzChunk writes chunks in all ways: what is written for Elasticsearch and as GELF is JSON.
func FuzzChunk(f *testing.F) {
	f.Add(chunk(f, `{"a.b":[{"c.d":{"e":[]}}],"@timestamp":1,"id":"x"}`, `{}`))
	f.Add([]byte("\x92\x01\x82\xc0\x01\xa3\xff\xfe\xfd\xc4\x01\x80"))
	o := DefaultES()
	o.Now = func() time.Time { return time.Unix(when, 0) }
	o.ReplaceDots, o.GenerateID, o.IncludeTag, o.LogstashFormat, o.LogstashPrefixKey = true, true, true, true, "$id"
	s, err := NewES(o)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, events []byte) {
		var sum tally
		w := &esWork{}
		whole, err := s.write(w, &sum, "tag", events)
		if n, end, counted := record.Count(events); n != len(w.sent) || end != whole || (err == nil) != (counted == nil) {
			t.Errorf("%d of %d records, up to %d of %d", len(w.sent), n, whole, end)
		}
		lines := strings.Split(strings.TrimSuffix(string(w.text), "\n"), "\n")
		if len(w.sent) > 0 && len(lines) != 2*len(w.sent) {
			t.Errorf("%d lines for %d records", len(lines), len(w.sent))
		}
		text, _, _ := (&gelfWriter{keys: DefaultGELF()}).appendChunk(nil, events[:whole])
		for _, line := range append(lines[:len(lines):len(lines)], strings.ReplaceAll(string(text), `}{"version"`, "}\n{\"version\"")) {
			for one := range strings.SplitSeq(line, "\n") {
				if one != "" && !jsontext.Value(one).IsValid(jsontext.AllowDuplicateNames(true)) {
					t.Errorf("%q is no JSON", one)
				}
			}
		}
	})
}
