package tail

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// file is one that is read.
type file struct {
	key, path, tag string
	f              *os.File

	at       int64 // where the next line begins
	seen     int64 // what stood before was read, if only the beginning of a line
	skipping bool  // the rest of the line at the offset is not wanted
	hole     bool  // it was cut, and its writer may go on where it was: NULs come first
	active   bool  // there may be more to read
	stuck    bool  // a line is too long, and what is to be done with it was not said
	print    fingerprint
	gone     time.Time // when its path was found to be another's; zero = it is there
	closed   bool

	lines  connect.Lines
	starts []int64   // of the lines that wait for more
	fed    time.Time // when the last line came
}

func (f *file) cursor() []byte {
	c := cursor{at: f.at, skipping: f.skipping, print: f.print, path: f.path}
	if len(f.starts) > 0 {
		c.at = f.starts[0]
	}
	return c.encode()
}

// fill reads one block of a file and cuts it into lines.
func (r *reader) fill(f *file, now time.Time) {
	if f.print.size > 0 && printOf(f.f, f.print.size) != f.print {
		r.restart(f, now) // it was cut, and is longer than before already
	}
	n, err := f.f.ReadAt(r.block, f.at)
	f.active, f.seen = n == len(r.block), f.at+int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		f.active = false
		r.warn(f.path, err)
	}
	data := r.block[:n]
	if f.hole {
		data = bytes.TrimLeft(data, "\x00")
		f.at += int64(n - len(data))
		f.hole = len(data) == 0
	}
	r.cut(f, data, now)
}

// restart begins with a file from its beginning, because it is shorter than it was.
func (r *reader) restart(f *file, now time.Time) {
	r.rest(f, now)
	f.at, f.seen, f.skipping, f.hole, f.active, f.stuck, f.print = 0, 0, false, true, true, false, fingerprint{}
	r.keep(f)
}

// cut makes events of the lines of a block that begins at the offset of a file. A line
// without its end is left.
func (r *reader) cut(f *file, data []byte, now time.Time) {
	base, used, limit := f.at, 0, r.o.BufferMaxSize
	r.begin(f, now)
cut:
	for !r.batch.isFull() {
		rest := data[used:]
		end := bytes.IndexByte(rest, '\n')
		if f.skipping {
			if f.skipping = end < 0; f.skipping {
				used = len(data)
				break
			}
			used += end + 1
			continue
		}
		line := rest
		if end >= 0 {
			line = rest[:end]
		}
		switch long := len(line) > limit; {
		case !long && end < 0:
			break cut // it waits for its end
		case !long:
			r.line(f, line, base+int64(used), now)
		case r.o.TruncateLongLines:
			r.line(f, whole(line[:limit]), base+int64(used), now)
		case !r.o.SkipLongLines:
			r.stick(f, base+int64(used))
			break cut
		}
		if f.skipping = end < 0; f.skipping {
			used = len(data)
			break
		}
		used += end + 1
	}
	if r.batch.isFull() && used < len(data) {
		f.active = true
	}
	f.at += int64(used)
	if f.print.size < printBytesMax && f.at > int64(f.print.size) {
		f.print = printOf(f.f, int(min(f.at, printBytesMax)))
	}
	if used > 0 {
		r.keep(f)
	}
}

// whole leaves a character away that is there in part.
func whole(line []byte) []byte {
	for cut := 1; cut < utf8.UTFMax && cut <= len(line); cut++ {
		if tail := line[len(line)-cut:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return line[:len(line)-cut]
			}
			break
		}
	}
	return line
}

// stick leaves a file at a line that is too long.
func (r *reader) stick(f *file, at int64) {
	f.stuck = true
	r.o.Log.Warn("a line is longer than buffer_max_size, so the file is not read on; raise buffer_max_size, or set skip_long_lines or truncate_long_lines",
		"path", f.path, "offset", at, "buffer_max_size", r.o.BufferMaxSize)
}

// begin makes what stands before the text in each event of a block.
func (r *reader) begin(f *file, now time.Time) {
	b, fields := record.AppendHead(r.prefix[:0], record.At(now)), uint32(1)
	for _, key := range []string{r.o.PathKey, r.o.OffsetKey} {
		if key != "" {
			fields++
		}
	}
	b = msgp.AppendMapHeader(b, fields)
	if r.o.PathKey != "" {
		b = msgp.AppendString(msgp.AppendString(b, r.o.PathKey), f.path)
	}
	if r.o.OffsetKey != "" {
		b = msgp.AppendString(b, r.o.OffsetKey)
	} else {
		b = msgp.AppendString(b, r.o.Key)
	}
	r.prefix = b
}

// line makes the events of a line.
func (r *reader) line(f *file, line []byte, at int64, now time.Time) {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if len(line) == 0 && r.o.SkipEmptyLines {
		return
	}
	b := r.batch
	if f.lines != nil {
		begin, first := len(b.buf), append(f.starts, at)[0]
		out, events, held := f.lines.Line(b.buf, line, now)
		f.starts = append(f.starts, at)
		f.starts = f.starts[max(0, len(f.starts)-held):]
		b.buf, f.fed = out, now
		r.add(f, begin, events, first)
		return
	}
	b.buf = append(b.buf, r.prefix...)
	if r.o.OffsetKey != "" {
		b.buf = msgp.AppendString(msgp.AppendUint64(b.buf, uint64(at)), r.o.Key)
	}
	b.buf = msgp.AppendStringFromBytes(b.buf, line)
	p := b.part(f.tag)
	p.end = len(b.buf)
	p.count++
}

// rest ends the event that waits for more lines.
func (r *reader) rest(f *file, now time.Time) {
	if f.lines == nil || len(f.starts) == 0 {
		return
	}
	begin, first := len(r.batch.buf), f.starts[0]
	out, events := f.lines.Rest(r.batch.buf, now)
	r.batch.buf, f.starts = out, nil
	r.add(f, begin, events, first)
	r.keep(f)
}

// add counts events that stand at the end of the batch, with the fields of their file.
func (r *reader) add(f *file, begin, events int, at int64) {
	if events == 0 {
		return
	}
	fields, n := r.prefix[:0], 0
	if r.o.PathKey != "" {
		fields, n = msgp.AppendString(msgp.AppendString(fields, r.o.PathKey), f.path), n+1
	}
	if r.o.OffsetKey != "" {
		fields, n = msgp.AppendUint64(msgp.AppendString(fields, r.o.OffsetKey), uint64(at)), n+1
	}
	b := r.batch
	if r.prefix = fields; n > 0 {
		out, err := record.AppendFields(nil, b.buf[begin:], fields, n)
		if err == nil { // a parser writes whole events
			b.buf = append(b.buf[:begin], out...)
		}
	}
	p := b.part(f.tag)
	p.end, p.count = len(b.buf), p.count+events
}

// keep takes the cursor of a file with what was read of it.
func (r *reader) keep(f *file) { r.batch.part(f.tag).keep(f.key, f.cursor()) }

// settle ends what has waited long enough: lines for more of them, and a file that is no
// longer at its path for its writer.
func (r *reader) settle(f *file, now time.Time) {
	if len(f.starts) > 0 && now.Sub(f.fed) >= r.o.MultilineFlush {
		r.rest(f, now)
	}
	if f.closed || f.gone.IsZero() || f.active && !f.stuck || now.Sub(f.gone) < r.o.RotateWait || !r.end(f, now) {
		return
	}
	r.batch.part(f.tag).keep(f.key, nil)
	r.close(f)
}

// close stops to read a file.
func (r *reader) close(f *file) {
	_ = f.f.Close() // it was only read
	f.closed = true
	delete(r.files, f.key)
}

// end takes a last line without its end, and reports whether there was room for it.
func (r *reader) end(f *file, now time.Time) bool {
	if f.closed || f.stuck {
		return true
	} else if r.batch.isFull() {
		return false
	}
	n, _ := f.f.ReadAt(r.block, f.at) // what cannot be read was said
	line := r.block[:n]
	if bytes.IndexByte(line, '\n') >= 0 || n > r.o.BufferMaxSize {
		f.active = true // it was written to just now
		return false
	}
	if n > 0 && !f.skipping {
		r.begin(f, now)
		r.line(f, line, f.at, now)
		f.at += int64(n)
		f.seen = f.at
		r.keep(f)
	}
	r.rest(f, now)
	return true
}
