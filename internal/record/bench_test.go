//go:build unix

package record

import (
	"syscall"
	"testing"
)

func BenchmarkAppendText(b *testing.B) {
	line, dst := make([]byte, 150), make([]byte, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		if len(dst) > 1<<20-200 {
			dst = dst[:0]
		}
		dst = AppendText(dst, Time{Sec: 1448403340, Nsec: 5}, "log", line)
	}
}

// perRecord reports the processor time of a record, on a machine that does other
// things too, when the function that it returns is called.
func perRecord(b *testing.B) func() {
	b.Helper()
	spent := func() int64 {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			b.Fatal(err)
		}
		return used.Utime.Nano() + used.Stime.Nano()
	}
	begin := spent()
	return func() { b.ReportMetric(float64(spent()-begin)/float64(b.N)/100, "cpu-ns/record") }
}

func BenchmarkCount(b *testing.B) {
	chunk := sample(b)
	b.ReportAllocs()
	done := perRecord(b)
	for b.Loop() {
		if _, _, err := Count(chunk); err != nil {
			b.Fatal(err)
		}
	}
	done()
}

func BenchmarkJSONLines(b *testing.B) {
	for _, form := range []DateForm{Double, ISO8601, EpochMillis} {
		b.Run(string(form), func(b *testing.B) {
			chunk, dst, w := sample(b), make([]byte, 0, 1<<20), NewJSONWriter(Lines, "date", form, true)
			b.ReportAllocs()
			done := perRecord(b)
			for b.Loop() {
				dst, _, _ = w.AppendChunk(dst[:0], chunk)
			}
			done()
		})
	}
}

func BenchmarkJSONLinesOfFields(b *testing.B) {
	var chunk []byte
	fields := body(b, `{"host":"web-17","status":200,"ms":12.5,"path":"/api/v1/items","ok":true,"kubernetes":{"pod":"shop-7d4b9","ns":"prod"}}`)
	for range 100 {
		chunk = AppendEvent(chunk, Time{Sec: 1448403340}, nil, fields)
	}
	dst, w := make([]byte, 0, 1<<20), NewJSONWriter(Lines, "date", Double, true)
	b.ReportAllocs()
	done := perRecord(b)
	for b.Loop() {
		dst, _, _ = w.AppendChunk(dst[:0], chunk)
	}
	done()
}
