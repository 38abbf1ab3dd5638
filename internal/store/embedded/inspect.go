package embedded

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
)

// Inspection is what a directory holds, and what of it cannot be read.
type Inspection struct {
	Jobs         [job.States]int64
	Payloads     int64
	PayloadBytes int64 // with the results that are part of their jobs
	Failures     int64
	Rows         int64
	Tokens       int64      // among them
	Orphans      int64      // payloads that no job refers to (I8): they cost space, no more
	Latest       job.Millis // the latest date on any job: nothing was written later
	Damaged      int64      // records that cannot be read, or whose payload is missing
	Examples     []string   // the first damagesTold of them
}

const damagesTold = 5

func (in *Inspection) damage(format string, args ...any) {
	if in.Damaged++; len(in.Examples) < damagesTold {
		in.Examples = append(in.Examples, fmt.Sprintf(format, args...))
	}
}

// Inspect reads every record of a directory that no server uses, and writes
// nothing but its lock. One in use is refused with Exists; one whose tables or
// log are damaged, so that there is nothing to go on with, is Corrupt.
func Inspect(fs vfs.FS, dir string) (in Inspection, err error) {
	claim, err := claimDir(fs, dir)
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, claim.Close()) }()
	data := fs.PathJoin(dir, "data")
	w, err := openWitness(fs, dir, nil)
	if err == nil {
		err = w.check()
	}
	if err != nil {
		return in, err
	}
	defer func() { // Pebble's Fatalf
		if p := recover(); p != nil {
			err = corrupt("%s", firstLine(fmt.Sprint(p)))
		}
	}()
	db, err := pebble.Open(data, &pebble.Options{
		FS: &fence{FS: fs, giveUp: func(error) {}}, ReadOnly: true, ErrorIfNotExists: true, Logger: readLogger{},
		FormatMajorVersion: pebble.FormatWALSyncChunks,
		EventListener:      &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}, // whoever reads is told
	})
	if err != nil {
		return in, unopened(data, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	h := &handle{db: db}
	shared, err := in.jobs(h)
	if err != nil {
		return in, err
	}
	var jobs int64
	for _, n := range in.Jobs {
		jobs += n
	}
	if was := w.known.Jobs; in.Damaged == 0 && was >= 0 && jobs != was {
		in.damage("it has %d jobs, and had %d when it was closed", jobs, was)
	}
	if err := in.payloads(h, shared); err != nil {
		return in, err
	}
	return in, in.rest(h)
}

// scan calls f for all keys of a kind that can be read.
func (in *Inspection) scan(h *handle, from, to []byte, f func(key, value []byte) error) error {
	gaps, err := h.scanAround(from, to, f)
	for _, g := range gaps {
		in.damage("what is between the keys %x and %x: %v", g.from, g.to, g.why)
	}
	return err
}

// jobs reads all jobs and looks whether their payloads are there. It returns
// the payloads that are kept under another id than that of their job.
func (in *Inspection) jobs(h *handle) (shared map[job.ID]bool, err error) {
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyPayload}, UpperBound: []byte{keyPayload + 1}})
	if err != nil {
		return nil, readError(err)
	}
	shared = map[job.ID]bool{}
	names := newNames()
	err = in.scan(h, []byte{keyJob}, []byte{keyJob + 1}, func(key, value []byte) error {
		var id job.ID
		if len(key) != 1+len(id) {
			in.damage("a job key of %d bytes", len(key))
			return nil
		}
		copy(id[:], key[1:])
		j, err := decodeJob(id, value, names)
		if err != nil {
			in.damage("job %s: %v", id, err)
			return nil
		}
		in.Jobs[j.State]++
		in.Latest = max(in.Latest, j.Created, j.DequeuedAt, j.FailedAt, j.CompletedAt, j.DiedAt)
		if j.Payload != id {
			shared[j.Payload] = true
		}
		missing := func(ref job.ID) bool {
			want := payloadKey(nil, ref)
			found := it.SeekGE(want) && string(it.Key()) == string(want)
			return !found && it.Error() == nil // else the scan of the payloads tells of it
		}
		if !j.Payload.IsZero() && missing(j.Payload) { // it is zero for one that was set aside
			in.damage("job %s: its payload is missing", id)
		}
		if ref := j.ResultRef(); !ref.IsZero() {
			if shared[ref] = true; missing(ref) {
				in.damage("job %s: its result is missing", id)
			}
		} else if made := j.Result(); made != nil {
			in.PayloadBytes += int64(len(made.Bytes))
		}
		return nil
	})
	return shared, errors.Join(err, it.Close())
}

// payloads reads all payloads and looks whether there is a job for each.
func (in *Inspection) payloads(h *handle, shared map[job.ID]bool) error {
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyJob}, UpperBound: []byte{keyJob + 1}})
	if err != nil {
		return readError(err)
	}
	err = in.scan(h, []byte{keyPayload}, []byte{keyPayload + 1}, func(key, value []byte) error {
		in.Payloads++
		in.PayloadBytes += int64(len(value))
		var ref job.ID
		if copy(ref[:], key[1:]); shared[ref] {
			return nil
		}
		want := jobKey(nil, ref)
		if found := it.SeekGE(want) && string(it.Key()) == string(want); !found && it.Error() == nil {
			in.Orphans++
		}
		return nil
	})
	return errors.Join(err, it.Close())
}

// rest reads failures and rows.
func (in *Inspection) rest(h *handle) error {
	err := in.scan(h, []byte{keyFailure}, []byte{keyFailure + 1}, func(_, value []byte) error {
		in.Failures++
		if _, err := decodeFailure(1, value); err != nil {
			in.damage("a failure record: %v", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return in.scan(h, []byte{keyRow}, []byte{keyRow + 1}, func(key, value []byte) error {
		if in.Rows++; len(key) > 1 && job.Table(key[1]) == job.Credentials {
			in.Tokens++
		}
		if len(key) < 2 || key[1] >= byte(job.Tables) {
			in.damage("a row key of %d bytes", len(key))
		} else if _, err := decodeRow(job.Table(key[1]), string(key[2:]), value); err != nil {
			in.damage("row %q of table %d: %v", strings.ToValidUTF8(string(key[2:]), "?"), key[1], err)
		}
		return nil
	})
}

// readLogger ends a reader that cannot go on.
type readLogger struct{}

// Infof implements pebble.Logger.
func (readLogger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (readLogger) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger.
func (readLogger) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
