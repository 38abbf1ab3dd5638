package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"github.com/reprisehq/reprise/internal/job"
)

// Salvaged is what came over from a damaged directory, and what did not.
type Salvaged struct {
	Was   int64    // jobs when the directory was closed; -1 = nobody knows
	Jobs  int64    // that came over, those set aside among them
	Aside int64    // of which the row or the payload cannot be read
	Lost  []string // what cannot be read, and where
	// Rows says that tokens or settings may be among it, as nobody knows what a log held.
	Rows   bool
	Tokens int64 // that came over
}

// salvage takes what can be read of one directory to another. Pebble reads it, from
// a directory of links and mended copies, so that deletions and older versions of
// rows are told from what counts.
type salvage struct {
	out   Salvaged
	fs    vfs.FS
	w     *witness // of the damaged directory
	mend  string   // links and mended copies
	h     *handle
	to    *pebble.Batch // into db
	db    *handle
	names *names
}

const batchMax = 4 << 20 // bytes

// Salvage writes what can be read of a directory that no server uses into another,
// which is missing or empty, and gone after an error; it changes nothing of the first. Jobs whose rows or
// payloads cannot be read are set aside at the next start, as after Open. It is
// Corrupt where nobody can tell which tables count, or where rows are lost without
// which a server must not start.
func Salvage(fs vfs.FS, from, to string) (out Salvaged, err error) {
	if _, err := fs.Stat(fs.PathJoin(from, dataName)); err != nil {
		return out, job.Errorf(job.Invalid, "%s has no directory %q (%v): it is not a data directory, or only a backup helps", from, dataName, err)
	}
	claim, err := claimFor(fs, from, true)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, claim.Close()) }()
	if err := regular(fs, from); err != nil {
		return out, err
	}
	s := &salvage{fs: fs, mend: fs.PathJoin(to, "damaged.tmp"), names: newNames()}
	defer func() {
		if err = errors.Join(err, fs.RemoveAll(s.mend)); err != nil {
			if e, ok := errors.AsType[*job.Error](err); ok {
				err = job.Errorf(e.Kind, "%s", strings.ReplaceAll(err.Error(), damagedToDo, "; only a backup helps"))
			}
			err = errors.Join(err, fs.RemoveAll(to))
		}
	}()
	defer func() { // Pebble's Fatalf
		if p := recover(); p != nil {
			err = corrupt("%s", firstLine(fmt.Sprint(p)))
		}
	}()
	n, err := ReadFormat(fs, fs.PathJoin(from, "FORMAT"))
	switch {
	case err != nil:
		s.lose("FORMAT: %v", firstLine(err.Error()))
	case n > Format:
		return out, job.Errorf(job.Invalid, "the data directory has format %d, this version knows up to %d; use a newer version", n, Format)
	}
	if s.w, err = openWitness(fs, from, nil); err != nil {
		return out, err
	}
	if s.out.Was = s.w.known.Jobs; s.w.blind {
		s.loseLog("%s cannot be read, so nobody can tell whether more is missing", witnessName)
	} else if s.w.known.Made && s.w.logs == (logEnds{}) {
		s.loseLog("%s does not tell how long the logs were, so nobody can tell whether their ends are missing", witnessName)
	}
	if err = fs.MkdirAll(s.mend, 0o700); err == nil {
		if err = s.mendFiles(); err == nil {
			err = s.read(to)
		}
	}
	if err != nil {
		return out, err
	}
	return s.out, nil
}

// regular refuses what is no file where a file is read: it may never answer.
func regular(fs vfs.FS, dir string) error {
	for _, dir := range []string{dir, fs.PathJoin(dir, dataName)} {
		names, err := fs.List(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			info, err := fs.Stat(fs.PathJoin(dir, name))
			if err == nil && !info.Mode().IsRegular() && (name == "FORMAT" || name == witnessName ||
				strings.HasPrefix(name, "MANIFEST-") || strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log")) {
				return job.Errorf(job.Invalid, "%s is no regular file; copy the directory, and delete it from the copy", fs.PathJoin(dir, name))
			}
		}
	}
	return nil
}

// loseLog is lose of changes that nobody knows.
func (s *salvage) loseLog(format string, args ...any) {
	s.out.Rows = true
	s.lose(format, args...)
}

func (s *salvage) lose(format string, args ...any) {
	s.out.Lost = append(s.out.Lost, strings.ReplaceAll(fmt.Sprintf(format, args...), damagedToDo, ""))
}

// mendFiles puts together what Pebble opens: an intact list of tables, all tables
// there are, and the intact records of the logs.
func (s *salvage) mendFiles() error {
	list, content, err := s.soundList()
	keeps := firstLog(content)
	if err == nil {
		err = s.write(list, content) // which may change content, as writers of Pebble do
	}
	if err == nil {
		err = s.mark("manifest", list)
	}
	if err == nil {
		err = s.mark("format-version", pebble.FormatWALSyncChunks.String())
	}
	if err != nil {
		return err
	}
	names, err := s.fs.List(s.w.data)
	if err != nil {
		return err
	}
	for _, known := range s.w.logs {
		if name := fmt.Sprintf("%06d.log", known.number); known.end > 0 && known.number >= keeps && !slices.Contains(names, name) {
			s.loseLog("%s is missing: %d bytes of the latest changes", name, known.end)
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			err = vfs.LinkOrCopy(s.fs, s.fs.PathJoin(s.w.data, name), s.fs.PathJoin(s.mend, name))
		} else if number, isLog := logNumber(name); isLog && number >= keeps {
			err = s.mendLog(name, number)
		}
		if err != nil {
			return err
		}
	}
	return s.missingTables()
}

func (s *salvage) mark(name, value string) error {
	m, _, err := atomicfs.LocateMarker(s.fs, s.mend, name)
	if err != nil {
		return err
	}
	return errors.Join(m.Move(value), m.Close())
}

func (s *salvage) write(name string, content []byte) error {
	f, err := s.fs.Create(s.fs.PathJoin(s.mend, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// soundList is the newest list of tables, as it was synced: there or in the copy beside
// SYNCED. An older one would not do, whatever the marker says.
func (s *salvage) soundList() (name string, content []byte, err error) {
	marker, err := atomicfs.ReadMarker(s.fs, s.w.data, "manifest")
	if err != nil {
		marker = ""
	}
	used, _ := listNumber(marker)
	var newest list
	for _, l := range s.w.known.Lists {
		if l.Number >= newest.Number {
			newest = l
		}
	}
	try := []list{newest}
	if used > newest.Number { // somebody who does not know of SYNCED worked here since, or the marker is wrong
		try = []list{{Number: used}, newest}
	}
	for _, l := range try {
		if l.Number == newest.Number && len(try) > 1 && l.Size > 0 {
			s.loseLog("%s, which was in use by its marker, cannot be read: the changes since MANIFEST-%06d", marker, l.Number)
		}
		name := fmt.Sprintf("MANIFEST-%06d", l.Number)
		for _, dir := range []string{s.w.data, s.w.dir} {
			content, err := readAll(s.fs, s.fs.PathJoin(dir, name))
			if err != nil || int64(len(content)) < l.Size || crc32.Checksum(content[:l.Size], castagnoli) != l.Sum {
				continue
			}
			if bad := badList(content); bad == int64(len(content)) || l.Size > 0 {
				return name, content[:max(bad, l.Size)], nil
			}
		}
	}
	return "", nil, job.Errorf(job.Corrupt, "%s holds no intact list of tables (MANIFEST), and %s no copy of it: nobody can tell which tables count, "+
		"and those that do not would bring back what was finished or deleted; only a backup helps", s.w.data, s.w.dir)
}

// missing is what Pebble says of each table that is not there.
var missing = regexp.MustCompile(`file (\d+) \(type sstable\) unknown`)

// missingTables puts files without content where tables are missing, so that the
// others can be read.
func (s *salvage) missingTables() error {
	db, err := s.open(false)
	if err == nil {
		return db.Close()
	}
	for _, found := range missing.FindAllStringSubmatch(err.Error(), -1) {
		s.lose("%s.sst is missing", found[1])
		if err := s.write(found[1]+".sst", nil); err != nil {
			return err
		}
	}
	return nil // the next attempt tells of anything else
}

func (s *salvage) open(anyway bool) (*pebble.DB, error) {
	return pebble.Open(s.mend, &pebble.Options{
		FS: s.fs, ReadOnly: true, ErrorIfNotExists: true, Logger: readLogger{}, FormatMajorVersion: pebble.FormatWALSyncChunks,
		DisableConsistencyCheck: anyway, DisableTableStats: true,
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}, // whoever reads is told
	})
}

// mendLog writes the intact records of a log anew.
func (s *salvage) mendLog(name string, number uint64) error {
	content, err := readAll(s.fs, s.fs.PathJoin(s.w.data, name))
	if err != nil {
		return err
	}
	var synced int64
	for _, l := range s.w.logs {
		if l.number == number {
			synced = int64(l.end) //nolint:gosec // an offset
		}
	}
	var out bytes.Buffer
	w := record.NewWriter(&out)
	holes, stamped := intactRecords(content, uint32(number), func(r []byte) { //nolint:gosec // chunks carry the low half
		_, err = w.WriteRecord(r)
	})
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	end, synced := int64(len(content)), max(synced, stamped)
	if n := len(holes); n > 0 && holes[n-1][1] == end {
		holes[n-1][1] = max(end, synced)
	} else if end < synced {
		holes = append(holes, [2]int64{end, synced})
	}
	for _, h := range holes {
		if h[1] < end || h[0]+logTrailer < synced { // the trailer of a closed log holds nothing
			s.loseLog("%s is damaged from byte %d to %d: the changes there", name, h[0], h[1])
		}
	}
	return s.write(name, out.Bytes())
}

// intactRecords calls f for every record of a log of which all chunks are intact, and
// returns where there are none (from, to) and up to where the chunks say it was on disk.
func intactRecords(content []byte, number uint32, f func([]byte)) (holes [][2]int64, synced int64) {
	var begun []byte // a record
	for start := 0; start < len(content); start += logBlock {
		block := content[start:min(start+logBlock, len(content))]
		for at := 0; at < len(block); {
			size, end, ok := logChunk(block[at:], number)
			if !ok && len(block) == logBlock && logPadding(block[at:]) {
				break
			}
			if !ok {
				from := at
				for at++; at < len(block) && !ok; at++ {
					_, _, ok = logChunk(block[at:], number)
				}
				if ok {
					at--
				}
				if n := len(holes); n > 0 && holes[n-1][1] == int64(start+from) {
					holes[n-1][1] = int64(start + at)
				} else {
					holes = append(holes, [2]int64{int64(start + from), int64(start + at)})
				}
				begun = nil
				continue
			}
			synced = max(synced, end)
			body := block[at+chunkHeader : at+size]
			switch block[at+6] {
			case chunkTypeFirst: // and last
				f(body)
			case chunkTypeFirst + 1:
				begun = bytes.Clone(body)
			case chunkTypeLast - 1, chunkTypeLast:
				if begun != nil {
					begun = append(begun, body...)
				}
				if block[at+6] == chunkTypeLast && begun != nil {
					f(begun)
					begun = nil
				}
			}
			at += size
		}
	}
	return holes, synced
}

// read copies what can be read into a new store, which is loaded once more at the end.
func (s *salvage) read(to string) (err error) {
	from, err := s.open(true)
	if err != nil {
		return unopened(s.w.data, err)
	}
	st, err := Open(Options{Dir: to, FS: s.fs, Now: func() job.Millis { return 0 }, Sync: OS})
	if err != nil {
		return errors.Join(err, from.Close())
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	s.h, s.db = &handle{db: from}, st.db.Load()
	err = s.db.guarded(func(db *pebble.DB) (err error) { // a disk that fails ends it
		defer func() {
			if p := recover(); p != nil { // Pebble's Fatalf
				err = corrupt("%s", firstLine(fmt.Sprint(p)))
			}
			err = errors.Join(err, from.Close())
		}()
		s.to = db.NewBatch()
		for _, f := range []func() error{s.others, s.jobs, func() error { return s.flush(0) }} {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	})
	if p := s.db.poison.Load(); p != nil {
		return job.Errorf(job.Unavailable, "writing into %s: %v", to, p.Cause)
	}
	if err == nil {
		err = st.Reopen(context.Background()) //nolint:forbidigo // it does not ask
	}
	return err
}

// flush hands over what was collected, once it is more than so many bytes.
func (s *salvage) flush(most int) error {
	if s.to.Len() <= most {
		return nil
	}
	err := s.db.recovering(func() error { return s.to.Commit(pebble.NoSync) })
	s.to.Reset()
	return err
}

func (s *salvage) set(key, value []byte) error {
	if err := s.to.Set(key, value, nil); err != nil {
		return err
	}
	return s.flush(batchMax)
}

// others copies rows, failures and the dates of receipts.
func (s *salvage) others() error {
	for t := range job.Tables {
		gaps, err := s.h.scanAround(rowKey(nil, t, ""), rowKey(nil, t+1, ""), func(key, value []byte) error {
			if t == job.Credentials {
				s.out.Tokens++
			}
			return s.set(key, value)
		})
		if err != nil {
			return err
		}
		if len(gaps) > 0 && t != job.Receipts { // a server would be open, numbers come twice, a queue lose its order
			return job.Errorf(job.Corrupt, "what cannot be read (%v) holds tokens, numbers that must not come twice, or settings, without which no server may work; only a backup helps",
				firstLine(gaps[0].why.Error()))
		}
		s.loseGaps("receipts", gaps)
	}
	for kind, what := range map[byte]string{keyFailure: "failures", keyReceiptAt: "dates of receipts"} {
		gaps, err := s.h.scanAround([]byte{kind}, []byte{kind + 1}, s.set)
		if err != nil {
			return err
		}
		s.loseGaps(what, gaps)
	}
	return nil
}

func (s *salvage) loseGaps(what string, gaps []gap) {
	for _, g := range gaps {
		s.lose("%s between the keys %x and %x: %v", what, g.from, g.to, g.why)
	}
}

// jobs copies jobs with their payloads and results. Those in gaps are found by their
// payloads, which have the same ids.
func (s *salvage) jobs() error {
	gaps, err := s.h.scanAround([]byte{keyJob}, []byte{keyJob + 1}, s.job)
	if err != nil {
		return err
	}
	s.loseGaps("jobs", gaps)
	for _, g := range gaps {
		from, to := bytes.Clone(g.from), bytes.Clone(g.to)
		from[0], to[0] = keyPayload, to[0]-keyJob+keyPayload
		more, err := s.h.scanAround(from, to, func(key, body []byte) error {
			row := append([]byte{keyJob}, key[1:]...)
			value, err := s.h.get(row)
			switch {
			case s.h.unreadable(err):
				s.out.Jobs, s.out.Aside = s.out.Jobs+1, s.out.Aside+1
				return errors.Join(s.set(key, body), s.set(row, nil))
			case err != nil || value == nil:
				return err
			}
			return s.job(row, value)
		})
		if err != nil {
			return err
		}
		s.loseGaps("nobody knows which jobs, whose payloads were", more)
	}
	return nil
}

// job copies one, or sets it aside if its row or payload cannot be read.
func (s *salvage) job(key, row []byte) error {
	var id job.ID
	if len(key) != 1+len(id) {
		return nil // no server reads it
	}
	copy(id[:], key[1:])
	s.out.Jobs++
	j, err := decodeJob(id, row, s.names)
	if err != nil {
		s.out.Aside++
		s.lose("job %s: its row", id)
		j = &job.Job{Payload: id}
	}
	ok, err := s.payload(j.Payload)
	if err == nil && !ok && len(row) > 0 && j.Queue != "" {
		s.out.Aside++
		s.lose("job %s of type %q in queue %q: its payload", id, j.Type, j.Queue)
		row = nil
	}
	if ref := j.ResultRef(); err == nil && !ref.IsZero() {
		if ok, err = s.payload(ref); err == nil && !ok {
			s.lose("job %s: its result", id)
		}
	}
	return errors.Join(err, s.set(append([]byte{keyJob}, id[:]...), row))
}

// payload copies one; ok says that it is there, and can be read.
func (s *salvage) payload(ref job.ID) (ok bool, err error) {
	if ref.IsZero() {
		return true, nil // of a job that was set aside before
	}
	body, err := s.h.get(payloadKey(nil, ref))
	if s.h.unreadable(err) || err == nil && body == nil {
		return false, nil
	}
	return err == nil, errors.Join(err, s.set(payloadKey(nil, ref), body))
}
