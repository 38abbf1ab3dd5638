package local

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

// FileOptions describe a File. The comments name the properties.
type FileOptions struct {
	Path           string // path: the directory; "" = that of the process
	File           string // file; "" = the tag, with _ for what a name should not have
	Format         string // format: out_file, plain, csv, ltsv, template or msgpack
	Mkdir          bool   // mkdir: the directory is made if it is not there
	Sync           bool   // sync: a chunk is done only when it survives a power cut
	Delimiter      string // delimiter of csv and ltsv; "" = a comma, a tab
	LabelDelimiter string // label_delimiter of ltsv; "" = a colon
	Template       string // template
	ColumnNames    bool   // csv_column_names: in the first line of a file
	EscapeUnicode  bool   // json.escape_unicode

	Rotate         bool  // rotate: a file that is full is put aside as FILE.TIME
	RotateMaxSize  int64 // rotate_max_size: bytes
	RotateMaxFiles int   // rotate_max_files that are put aside are kept
	RotateGzip     bool  // rotate_gzip: they are compressed

	Now func() time.Time // the clock, of names of files that are put aside
}

// DefaultFile has the defaults of Fluent Bit, and no clock.
func DefaultFile() FileOptions {
	return FileOptions{
		Format: formatOut, Template: "{time} {message}", EscapeUnicode: true,
		RotateMaxSize: 100 << 20, RotateMaxFiles: 7, RotateGzip: true,
	}
}

// File appends chunks to files. It implements connect.Sink.
//
// A file that cannot be opened or written is a failure that is tried again: the
// original gives the records up when it cannot open a file, and says OK when a
// disk is full. What was written of a chunk before a fault is cut off again. Where that
// cannot be, because it is a pipe or others write there too, what is left of the chunk comes
// again, from the record on that was not written as a whole.
//
// A file is opened for each chunk, so that whoever moves it away gets a new one.
type File struct {
	o  FileOptions
	mu sync.Mutex // guards what follows, and is held while a chunk is written
	l  lines
	// text holds lines that are not yet written.
	text []byte

	tidying sync.Mutex     // held while files that are put aside are compressed and removed
	tidiers sync.WaitGroup // Close waits for them
}

var _ connect.Sink = (*File)(nil)

// NewFile makes a sink, or tells all that is wrong with the options. No file is made yet.
func NewFile(o FileOptions) (*File, error) {
	var faults connect.Faults
	delimiter := map[string]string{formatCSV: ",", formatLTSV: "\t"}
	if !slices.Contains([]string{formatOut, formatPlain, formatCSV, formatLTSV, formatTemplate, formatMsgpack}, o.Format) {
		faults.Add("format", "is %q; it must be out_file, plain, csv, ltsv, template or msgpack", o.Format)
	}
	if o.Delimiter == "" {
		o.Delimiter = delimiter[o.Format]
	}
	if o.LabelDelimiter == "" {
		o.LabelDelimiter = ":"
	}
	if o.Rotate && o.RotateMaxSize < 1 {
		faults.Add("rotate_max_size", "is %d; it must be at least 1", o.RotateMaxSize)
	}
	if o.Rotate && o.RotateMaxFiles < 1 {
		faults.Add("rotate_max_files", "is %d; it must be at least 1", o.RotateMaxFiles)
	}
	if strings.ContainsRune(o.Path+o.File, 0) {
		faults.Add("file", "has a zero byte in its name")
	}
	f := &File{o: o}
	f.l = lines{o: &f.o, json: record.NewJSONWriter(record.Lines, "", record.Double, o.EscapeUnicode)}
	return f, faults.Err()
}

// Close implements connect.Sink.
func (f *File) Close() error {
	f.tidiers.Wait()
	return nil
}

// pathFor is the file of a tag.
func (f *File) pathFor(tag string) string {
	name := f.o.File
	if name == "" {
		name = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_", r) {
				return r
			}
			return '_'
		}, strings.ReplaceAll(tag, "..", "_"))
		if strings.Trim(name, ".") == "" {
			name = "_"
		}
	}
	return filepath.Join(f.o.Path, name)
}

// Deliver implements connect.Sink, of a batch of one chunk.
func (f *File) Deliver(ctx context.Context, b *connect.Batch) []connect.Result {
	m := b.Chunk()
	if records, whole, err := record.Count(m.Body); err != nil {
		return []connect.Result{connect.Broken(m.Body, whole, err)}
	} else if records == 0 {
		return []connect.Result{{Outcome: job.OK}}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	path := f.pathFor(m.Type)
	file, err := f.open(path)
	if err != nil {
		return []connect.Result{failed(err.Error())}
	}
	stop := context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Unix(1, 0)) }) // a pipe may take nothing for ever
	whole, err := f.write(file, m.Type, m.Body)
	stop()
	if err = errors.Join(err, file.Close()); err == nil {
		return []connect.Result{{Outcome: job.OK}}
	}
	r := failed(err.Error())
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r = connect.Result{Outcome: job.Released}
	}
	if whole > 0 && whole < len(m.Body) { // when all of it is there, it may not be for long
		r.Parts = &connect.Parts{Rest: m.Body[whole:]}
	}
	return []connect.Result{r}
}

// open opens a file, after one that is full was put aside.
func (f *File) open(path string) (*os.File, error) {
	if f.o.Mkdir {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
	}
	if f.o.Rotate {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() >= f.o.RotateMaxSize {
			if err := f.putAside(path); err != nil {
				return nil, err
			}
		}
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o644) // a pipe that nobody reads is an error
}

// output is an open file.
type output interface {
	io.Writer
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

// textBytesMax is how much is written at once.
const textBytesMax = 256 << 10

// write writes a chunk. If there is an error, whole is how much of the chunk
// stands in the file nevertheless, up to the end of a record.
func (f *File) write(file output, tag string, chunk []byte) (whole int, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	written := int64(0)
	flush := func(at int) error {
		n, err := file.Write(f.text)
		written, f.text = written+int64(n), f.text[:0]
		if err == nil {
			whole = at
		}
		return err
	}
	f.text = f.text[:0]
	for r := record.NewReader(chunk); err == nil && r.Next(); {
		if f.o.Format == formatCSV && f.o.ColumnNames && info.Size() == 0 && len(f.text) == 0 && written == 0 {
			f.text = f.l.appendHeader(f.text, &r.Event)
		}
		if f.text = f.l.append(f.text, tag, &r.Event); len(f.text) >= textBytesMax || r.Offset() == len(chunk) {
			err = flush(r.Offset())
		}
	}
	if err == nil && f.o.Sync {
		err = file.Sync()
	}
	if err == nil {
		return whole, nil
	}
	if now, statErr := file.Stat(); statErr == nil && info.Mode().IsRegular() && now.Size() == info.Size()+written && file.Truncate(info.Size()) == nil {
		return 0, err
	}
	return whole, fmt.Errorf("%w; what was written of the chunk could not be cut off again", err)
}

// putAside renames a file that is full. What is to be done with those that were
// put aside is done meanwhile.
func (f *File) putAside(path string) error {
	aside := ""
	for at := f.o.Now().UTC(); aside == "" || exists(aside) || exists(aside+".gz"); at = at.Add(time.Millisecond) {
		aside = path + at.Format(".20060102_150405.000")
	}
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	f.tidiers.Go(func() { f.tidy(path) })
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// tidy compresses the files that were put aside and removes the oldest. What cannot be
// done now is tried when the next one is put aside.
func (f *File) tidy(path string) {
	f.tidying.Lock()
	defer f.tidying.Unlock()
	list, _ := filepath.Glob(escapeGlob(path) + ".[0-9]*_[0-9]*.[0-9]*")
	list = slices.DeleteFunc(list, func(name string) bool { return strings.HasSuffix(name, partial) })
	slices.Sort(list) // by time
	for len(list) > f.o.RotateMaxFiles {
		_ = os.Remove(list[0])
		list = list[1:]
	}
	for _, name := range list {
		if f.o.RotateGzip && !strings.HasSuffix(name, ".gz") {
			_ = compress(name)
		}
	}
}

// partial is behind the name of a file that is being compressed.
const partial = ".gz.partial"

// compress makes FILE.gz of FILE.
func compress(name string) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was read
	to, err := os.Create(name + partial)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(to)
	_, err = io.Copy(z, from)
	if err = errors.Join(err, z.Close(), to.Sync(), to.Close()); err != nil {
		return errors.Join(err, os.Remove(name+partial))
	}
	return errors.Join(os.Rename(name+partial, name+".gz"), os.Remove(name))
}

// escapeGlob is a name in which nothing is a pattern.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}
