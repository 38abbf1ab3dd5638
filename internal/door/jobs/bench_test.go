package jobs_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

var oneBody = `{"type":"webhook","queue":"default","payload":{"id":123456,"event":"invoice.paid","data":"` + strings.Repeat("x", 80) + `"}}`

func BenchmarkEnqueue(b *testing.B) {
	var r jobs.Reader
	b.ReportAllocs()
	for b.Loop() {
		r.Body.WriteString(oneBody)
		if _, err := r.Enqueue(""); err != nil {
			b.Fatal(err)
		}
		r.Reset(false)
	}
}

func BenchmarkBulk500(b *testing.B) {
	var r jobs.Reader
	body := `{"jobs":[` + strings.Repeat(oneBody+",", 499) + oneBody + `]}`
	b.ReportAllocs()
	for b.Loop() {
		r.Body.WriteString(body)
		if _, err := r.Bulk(); err != nil {
			b.Fatal(err)
		}
		r.Reset(false)
	}
}

func BenchmarkSuccess1000(b *testing.B) {
	var r jobs.Reader
	body := `{"ids":[` + strings.Repeat(`"03gq0x7k2m4v9c1d8f5h6j0a1",`, 999) + `"03gq0x7k2m4v9c1d8f5h6j0a1"]}`
	b.ReportAllocs()
	for b.Loop() {
		r.Body.WriteString(body)
		if _, _, err := r.Success(); err != nil {
			b.Fatal(err)
		}
		r.Reset(false)
	}
}

func BenchmarkLine(b *testing.B) {
	d := &engine.Delivery{
		Job: &job.Job{
			Type: "webhook", Queue: "default", Priority: 32768, State: job.Leased, ReadyAt: 1790000000000,
			DequeuedAt: 1790000000000, RetainDone: job.Unset, RetainDead: job.Unset, Copies: 1,
		},
		Payload: []byte(oneBody),
	}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = jobs.AppendLine(out[:0], d, false)
	}
}
