package ship

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

// opensearch is HOST:PORT of a server whose indexes a test may use: one that begins with
// reprise-test- and the name of the test is removed before it.
func opensearch(t *testing.T) (address, index string) {
	t.Helper()
	if address = os.Getenv("REPRISE_TEST_OPENSEARCH"); address == "" {
		t.Skip("REPRISE_TEST_OPENSEARCH names no server")
	}
	index = "reprise-test-" + strings.ToLower(t.Name())
	ask(t, http.MethodDelete, "http://"+address+"/"+index)
	return address, index
}

func ask(t *testing.T, method, url string) (answer map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func count(t *testing.T, address, index string) string {
	t.Helper()
	ask(t, http.MethodPost, "http://"+address+"/"+index+"/_refresh")
	return fmt.Sprint(ask(t, http.MethodGet, "http://"+address+"/"+index+"/_count")["count"])
}

func TestARealServerTakesEachRecordOnce(t *testing.T) {
	address, index := opensearch(t)
	typed := newES(t, address, func(o *ESOptions) { o.Index = index })
	whole(t, "with a type", deliver(t.Context(), typed, chunk(t, `{"n":1}`)), job.Retried, "set suppress_type_name to on")

	s := newES(t, address, func(o *ESOptions) { o.Index, o.SuppressType, o.GenerateID, o.Compress = index, true, true, "gzip" })
	var bodies []string
	for i := range 5000 {
		bodies = append(bodies, fmt.Sprintf(`{"n":%d,"text":"line %d \"é\" \\"}`, i, i))
	}
	events := chunk(t, bodies...)
	whole(t, "many", deliver(t.Context(), s, events), job.OK, "")
	whole(t, "the same again", deliver(t.Context(), s, events), job.OK, "") // 409 each
	if n := count(t, address, index); n != "5000" {
		t.Errorf("%s documents", n)
	}
	r := deliver(t.Context(), s, chunk(t, `{"n":"no number"}`, `{"n":7}`, `{"n":{"x":1}}`))
	if r.Outcome != job.OK || r.Parts == nil {
		t.Fatalf("%+v", r)
	}
	dead := 0
	for _, p := range r.Parts.Pieces {
		n, _, _ := record.Count(p.Body)
		dead += n
		if p.Failure.Type != "mapper_parsing_exception" || p.Failure.Status != 400 || !strings.Contains(p.Failure.Message, "failed to parse field [n] of type [long]") {
			t.Errorf("%+v", p.Failure)
		}
	}
	if n := count(t, address, index); n != "5001" || dead != 2 {
		t.Errorf("%s documents, %d dead", n, dead)
	}
}

func TestARealServerUpdates(t *testing.T) {
	address, index := opensearch(t)
	options := func(operation string) func(*ESOptions) {
		return func(o *ESOptions) { o.Index, o.SuppressType, o.IDKey, o.WriteOperation = index, true, "id", operation }
	}
	whole(t, "upsert", deliver(t.Context(), newES(t, address, options("upsert")), chunk(t, `{"id":"a","x":1}`, `{"id":"a","y":2}`)), job.OK, "")
	whole(t, "index", deliver(t.Context(), newES(t, address, options("index")), chunk(t, `{"id":"b"}`, `{"id":"b"}`)), job.OK, "")
	whole(t, "update of nothing", deliver(t.Context(), newES(t, address, options("update")), chunk(t, `{"id":"none","x":1}`)), job.Died, "document missing")
	source := ask(t, http.MethodGet, "http://"+address+"/"+index+"/_doc/a")["_source"].(map[string]any)
	if fmt.Sprint(source["x"], source["y"]) != "1 2" || count(t, address, index) != "2" {
		t.Errorf("%v", source)
	}
	days := newES(t, address, func(o *ESOptions) { o.LogstashFormat, o.LogstashPrefix, o.SuppressType = true, index, true })
	whole(t, "by days", deliver(t.Context(), days, record.AppendEvent(nil, record.Time{Sec: when}, nil, object(t, `{}`))), job.OK, "")
	if n := count(t, address, index+"-2015.11.24"); n != "1" {
		t.Errorf("%s documents of the day", n)
	}
	ask(t, http.MethodDelete, "http://"+address+"/"+index+"-2015.11.24")
}

func TestARealServerThatTakesNoMoreThanAMegabyte(t *testing.T) {
	address, index := opensearch(t)
	s := newES(t, address, func(o *ESOptions) { o.Index, o.SuppressType = index, true })
	var bodies []string
	for i := range 3000 {
		bodies = append(bodies, fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("x", 1000)))
	}
	halved := 0
	for left := [][]byte{chunk(t, bodies...)}; len(left) > 0; {
		events := left[0]
		left = left[1:]
		if r := deliver(t.Context(), s, events); r.Outcome == job.Released && r.Parts != nil {
			halved++
			left = append(left, r.Parts.Rest, r.Parts.Pieces[0].Body)
		} else {
			whole(t, "a part", r, job.OK, "")
		}
	}
	if n := count(t, address, index); n != "3000" || halved == 0 {
		t.Errorf("%s documents, halved %d times", n, halved)
	}
}
