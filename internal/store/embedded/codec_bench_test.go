package embedded

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// BenchmarkCodec writes and reads what is stored most: a job as it comes in, one that
// runs, and the receipt of a key.
func BenchmarkCodec(b *testing.B) {
	ready := sampleJobs()[0]
	leased := *ready
	leased.State, leased.DequeuedAt, leased.Deliveries = job.Leased, ready.Created+5, 1
	leased.Leases = []job.Lease{{Token: job.Token{1, 2, 3}, Holder: "worker-17/host", Kind: job.Unary, Since: ready.Created + 5, Until: ready.Created + 30_005, Length: 30_000}}
	receipt := &job.Receipt{Hash: [16]byte{1}, Content: [16]byte{2}, Job: ready.ID, Expires: ready.Created}
	shared := newNames()
	shared.of(ready.Queue)
	shared.of(ready.Type)
	for name, j := range map[string]*job.Job{"ready": ready, "leased": &leased} {
		var value []byte
		b.Run(name+"/write", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				value = appendJob(value[:0], j)
			}
		})
		b.Run(name+"/read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodeJob(j.ID, value, shared); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	var value []byte
	b.Run("receipt/write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			value = appendReceipt(value[:0], receipt)
		}
	})
	b.Run("receipt/read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decodeReceipt(&receipt.Hash, value); err != nil {
				b.Fatal(err)
			}
		}
	})
}
