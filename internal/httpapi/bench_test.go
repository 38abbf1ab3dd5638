package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// void is an answer nobody reads.
type void struct {
	head   http.Header
	status int
}

func (v *void) Header() http.Header         { return v.head }
func (v *void) WriteHeader(status int)      { v.status = status }
func (v *void) Write(b []byte) (int, error) { return len(b), nil }

// benchmark measures what the handler costs beside net/http and the engine.
func benchmark(b *testing.B, path, body string) {
	h := httpapi.New(httpapi.Options{Null: true})
	from := bytes.NewReader(nil)
	r, err := http.NewRequestWithContext(b.Context(), "POST", "http://127.0.0.1:7890"+path, io.NopCloser(from))
	if err != nil {
		b.Fatal(err)
	}
	r.Header["Content-Type"] = []string{"application/json"}
	r.ContentLength = int64(len(body))
	w := &void{head: http.Header{}}
	raw := []byte(body)
	b.ReportAllocs()
	for b.Loop() {
		from.Reset(raw)
		clear(w.head)
		h.ServeHTTP(w, r)
	}
	if w.status != http.StatusCreated {
		b.Fatalf("answered %d", w.status)
	}
}

const benchJob = `{"type":"webhook","queue":"default","payload":{"id":123456,"event":"invoice.paid","data":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}`

func BenchmarkEnqueue(b *testing.B) { benchmark(b, "/jobs", benchJob) }

func BenchmarkBulk500(b *testing.B) {
	benchmark(b, "/jobs/bulk", `{"jobs":[`+strings.Repeat(benchJob+",", 499)+benchJob+`]}`)
}
