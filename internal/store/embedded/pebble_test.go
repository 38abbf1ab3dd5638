package embedded

import (
	"bytes"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/prometheus/client_golang/prometheus"
)

// syncedBuffer is a disk: a sync returns when all is there.
type syncedBuffer struct{ bytes.Buffer }

func (*syncedBuffer) Sync() error { return nil }

// Pebble's LogWriter counts only the part of a block that it writes early: of what
// it was given here, each record after the sync of the one before, the last chunk
// promises less than half, and not all but one record (docs/adr/0007). When this
// test fails, Pebble is mended, and logFile.stamp corrects one fault less.
func TestPebbleForgetsFullBlocksInWhatALogPromises(t *testing.T) {
	const log, size, records = 7, 40_000, 20
	var disk syncedBuffer
	queue := make(chan struct{}, records)
	w := record.NewLogWriter(&disk, log, record.LogWriterConfig{
		WALFsyncLatency: prometheus.NewHistogram(prometheus.HistogramOpts{}), QueueSemChan: queue,
		WriteWALSyncOffsets: func() bool { return true },
	})
	for range records {
		var done sync.WaitGroup
		var failed error
		done.Add(1)
		queue <- struct{}{}
		if _, err := w.SyncRecord(make([]byte, size), &done, &failed); err != nil {
			t.Fatal(err)
		}
		if done.Wait(); failed != nil {
			t.Fatal(failed)
		}
	}
	written := disk.Len()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var promised int64
	for rest := disk.Bytes(); len(rest) > 0; rest = rest[min(logBlock, len(rest)):] {
		block := rest[:min(logBlock, len(rest))]
		for size, synced, ok := logChunk(block, log); ok; size, synced, ok = logChunk(block, log) {
			promised = max(promised, synced)
			block = block[size:]
		}
	}
	t.Logf("%d bytes are synced, %d are promised", written, promised)
	if promised >= int64(written)/2 {
		t.Errorf("of %d synced bytes %d are promised: Pebble counts full blocks now", written, promised)
	}
}
