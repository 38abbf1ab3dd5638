package embedded

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
)

// check compares the files of the database with what is known of them. It changes
// nothing, and must pass before Pebble opens: what Pebble does not know any more it
// deletes.
func (w *witness) check() error {
	desc := &pebble.DBDesc{}
	_, err := w.fs.Stat(w.data)
	if err == nil {
		desc, err = pebble.Peek(w.data, w.fs)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return unopened(w.data, err)
	}
	if !desc.Exists {
		if w.known.Made || w.fresh { // a new directory has our file before it has FORMAT
			return corrupt("the database is gone: %s has no MANIFEST, and had one%s", w.data, w.lastCount())
		}
		return nil
	}
	keeps, err := w.checkList(desc.ManifestFilename)
	if err != nil {
		return err
	}
	for _, l := range w.logs {
		if l.number < keeps || l.end == 0 {
			continue // all of it is in tables
		}
		if err := w.checkLog(l.number, int64(l.end)); err != nil { //nolint:gosec // an offset
			return err
		}
	}
	return checkLogTail(w.fs, w.data)
}

// unopened is why a database could not be opened: the operating system says what it
// did not do; anything else is about what the files hold.
func unopened(path string, err error) error {
	if own, ok := errors.AsType[*job.Error](err); ok {
		return own
	}
	_, system := errors.AsType[syscall.Errno](err)
	switch why := firstLine(err.Error()); {
	case system && !errors.Is(err, os.ErrNotExist):
	case errors.Is(err, pebble.ErrDBNotPristine), errors.Is(err, pebble.ErrDBAlreadyExists):
		return corrupt("opening %s: it lacks the file marker.format-version, which tells its layout", path)
	case pebble.IsCorruptionError(err), errors.Is(err, os.ErrNotExist), strings.Contains(why, "object size mismatch"),
		strings.Contains(why, "invalid marker filename"), strings.Contains(why, "format major version"), strings.Contains(why, "syntax"), strings.Contains(why, "OPTIONS"):
		return corrupt("opening %s: %s", path, why)
	}
	return job.Errorf(job.Unavailable, "opening %s: %v; see whether the disk works, has space, and lets the user of the server read and write", path, err)
}

// lastCount is how many jobs there were, if that is known.
func (w *witness) lastCount() string {
	if w.known.Jobs < 0 {
		return ""
	}
	return fmt.Sprintf(" and %d jobs", w.known.Jobs)
}

// checkList compares the list of tables. It returns the first log that is not in
// tables yet. What it has found to be in use is kept in inUse.
func (w *witness) checkList(path string) (keeps uint64, err error) {
	number, ok := listNumber(w.fs.PathBase(path))
	if !ok {
		return 0, corrupt("%s is not the name of a MANIFEST", path)
	}
	var newest uint64
	var mine *list
	for i := range w.known.Lists {
		l := &w.known.Lists[i]
		newest = max(newest, l.Number)
		if l.Number == number {
			mine = l
		}
	}
	content, err := readAll(w.fs, path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, corrupt("%s is missing: it names the tables that hold the jobs", path)
	case err != nil:
		return 0, err
	case mine == nil && number < newest:
		return 0, corrupt("%s is older than MANIFEST-%06d, which was in use: newer files are missing, or older ones were copied over them", path, newest)
	case mine != nil && int64(len(content)) < mine.Size:
		return 0, corrupt("%s has %d bytes, and had %d: tables are named in what is missing", path, len(content), mine.Size)
	case mine != nil && crc32.Checksum(content[:mine.Size], castagnoli) != mine.Sum:
		return 0, corrupt("%s is damaged at byte %d of %d: tables are named there", path, badList(content[:mine.Size]), mine.Size)
	}
	w.inUse = list{Number: number, Size: int64(len(content)), Sum: crc32.Checksum(content, castagnoli)}
	if mine == nil || w.inUse.Size != mine.Size {
		w.known.Jobs = -1 // somebody who does not know of this file worked here since, an earlier version for one
	}
	return firstLog(content), nil
}

func readAll(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}

// firstLog reads in a list of tables which log is the first that is not in tables
// yet. Each of its records begins with the name of the order of keys, if it has
// one, and then with the number of that log.
func firstLog(content []byte) (number uint64) {
	const name, first = 1, 2
	for records := record.NewReader(bytes.NewReader(content), 0); ; {
		r, err := records.Next()
		if err != nil {
			return number
		}
		in := bufio.NewReader(r)
		tag, err := binary.ReadUvarint(in)
		if err == nil && tag == name {
			var n uint64
			if n, err = binary.ReadUvarint(in); err == nil {
				_, err = in.Discard(int(min(n, logBlock))) //nolint:gosec // small
			}
			if err == nil {
				tag, err = binary.ReadUvarint(in)
			}
		}
		if err == nil && tag == first {
			if n, err := binary.ReadUvarint(in); err == nil {
				number = n
			}
		}
	}
}

// checkLog wants a log to be intact up to a place that was synced.
func (w *witness) checkLog(number uint64, end int64) error {
	path := w.fs.PathJoin(w.data, fmt.Sprintf("%06d.log", number))
	f, err := w.fs.Open(path, vfs.SequentialReadsOption)
	if errors.Is(err, os.ErrNotExist) {
		return corrupt("%s is missing: %d bytes of it were on disk, with the latest changes", path, end)
	}
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	bad, err := intact(f, end, func(b []byte) (int, bool) {
		size, _, ok := logChunk(b, uint32(number)) //nolint:gosec // chunks carry the low half
		return size, ok
	}, logPadding)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	if bad+logTrailer < end { // the trailer of a closed log holds nothing
		return corrupt("%s is damaged at byte %d, and was on disk up to byte %d: the changes from there on are at stake", path, bad, end)
	}
	return nil
}

// badList is the place at which a list of tables is damaged.
func badList(content []byte) int64 {
	bad, _ := intact(bytes.NewReader(content), int64(len(content)), func(b []byte) (int, bool) {
		const header = 7 // checksum (4), length (2), type (1)
		if len(b) < header {
			return 0, false
		}
		size := header + int(binary.LittleEndian.Uint16(b[4:]))
		return size, size <= len(b) && binary.LittleEndian.Uint32(b) == chunkSum(b[:size])
	}, func(rest []byte) bool { return len(rest) < 7 })
	return bad
}

// intact reads a file of chunks and returns the first place that is none and no
// padding of a block; end if all is well up to there.
func intact(r io.Reader, end int64, chunk func([]byte) (size int, ok bool), padding func(rest []byte) bool) (bad int64, err error) {
	block := make([]byte, logBlock)
	for start := int64(0); start < end; start += logBlock {
		n, err := io.ReadFull(r, block)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return start, err
		}
		for at := 0; at < logBlock && start+int64(at) < end; {
			size, ok := chunk(block[at:n])
			if !ok && n == logBlock && padding(block[at:]) {
				break
			}
			if !ok {
				return start + int64(at), nil
			}
			at += size
		}
	}
	return end, nil
}

// logTrailer is the size of the mark behind the last record of a closed log.
const logTrailer = 11

// logPadding says whether what is left of a block may be passed over, which is what
// Pebble does: less than its chunks need, and zero as far as it looks.
func logPadding(rest []byte) bool {
	switch n := len(rest); {
	case n < 7:
		return true
	case n < logTrailer:
		rest = rest[:7]
	case n >= chunkHeader:
		return false
	}
	for _, b := range rest {
		if b != 0 {
			return false
		}
	}
	return true
}
