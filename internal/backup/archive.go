// Package backup is the format of a backup: a gzipped tar archive that can be
// told from half of one, and unpacked by tar as well.
//
//	reprise-root/BACKUP       what this is: a Manifest as JSON
//	reprise-root/FORMAT       the number of the disk format
//	reprise-root/data/...     the database
//	reprise-root/END          the Manifest again
//
// It knows nothing of what is in the files.
package backup

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Names in an archive.
const (
	root      = "reprise-root/"
	nameBegin = "BACKUP"
	nameEnd   = "END"
	// FormatFile holds the number of the disk format.
	FormatFile = "FORMAT"
)

// Manifest describes a backup.
type Manifest struct {
	Version string `json:"version"` // of the server that made it
	Format  int    `json:"format"`  // of the files
	At      int64  `json:"at"`      // milliseconds since the epoch
	Files   int    `json:"files"`   // FORMAT and those of the database
	Bytes   int64  `json:"bytes"`   // of their contents
}

// Made is when it was made.
func (m Manifest) Made() time.Time { return time.UnixMilli(m.At) }

// File is one file, with its path below the root directory.
type File struct {
	Name string
	Size int64
}

const manifestMax = 4096 // bytes

// Write writes a backup of the files, which must not change. Until it has
// returned without an error there is none.
func Write(w io.Writer, m Manifest, files []File, open func(name string) (io.ReadCloser, error)) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	m.Files, m.Bytes = len(files), 0
	for _, f := range files {
		m.Bytes += f.Size
	}
	mark, err := json.Marshal(m)
	if err != nil {
		return err
	}
	head := func(name string, size int64) error {
		return t.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: root + name, Size: size, Mode: 0o600, ModTime: m.Made().Truncate(time.Second), Format: tar.FormatPAX,
		})
	}
	put := func(name string) error {
		err := head(name, int64(len(mark)))
		if err == nil {
			_, err = t.Write(mark)
		}
		return err
	}
	if err := put(nameBegin); err != nil {
		return err
	}
	for _, f := range files {
		if err := head(f.Name, f.Size); err != nil {
			return err
		}
		if err := copyFile(t, f, open); err != nil {
			return fmt.Errorf("reading %s: %w", f.Name, err)
		}
	}
	return errors.Join(put(nameEnd), t.Close(), z.Close())
}

func copyFile(to io.Writer, f File, open func(string) (io.ReadCloser, error)) error {
	from, err := open(f.Name)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	if err == nil && n != f.Size {
		err = fmt.Errorf("it has %d bytes and not %d", n, f.Size)
	}
	return errors.Join(err, from.Close())
}

// ErrBroken says that what was read is not a whole backup.
var ErrBroken = errors.New("this is not a whole backup")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrBroken, fmt.Sprintf(format, args...))
}

// Check reads a backup to its end and says what it is. Whatever is missing or
// too much makes it ErrBroken.
func Check(r io.Reader) (Manifest, error) {
	return read(r, nil, func(_ string, from io.Reader) error {
		_, err := io.Copy(io.Discard, from)
		return err
	})
}

// fileName is what a file of the database may be called.
var fileName = regexp.MustCompile(`^data/[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// read walks through an archive. begin is asked once the manifest is known, and
// each file is given to file, which reads all of it. After the end mark nothing
// may follow.
func read(r io.Reader, begin func(Manifest) error, file func(name string, from io.Reader) error) (m Manifest, err error) {
	in := bufio.NewReader(r)
	z, err := gzip.NewReader(in)
	if err != nil {
		return m, broken("it does not begin as one (%v)", err)
	}
	z.Multistream(false)
	t := tar.NewReader(z)
	if m, err = manifestAt(t, nameBegin); err != nil {
		return m, err
	}
	if begin != nil {
		if err := begin(m); err != nil {
			return m, err
		}
	}
	if err := files(t, m, file); err != nil {
		return m, err
	}
	end, err := manifestAt(t, nameEnd)
	if err != nil {
		return m, err
	}
	if end != m {
		return m, broken("its end belongs to another one")
	}
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return m, broken("something follows its end")
	}
	if n, err := io.Copy(io.Discard, z); err != nil || n > 0 { // to the checksum
		return m, broken("something follows its end, or its checksum is wrong (%v)", err)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return m, broken("something follows its end")
	}
	return m, nil
}

func manifestAt(t *tar.Reader, name string) (m Manifest, err error) {
	h, err := next(t)
	if err != nil {
		return m, err
	}
	if h.Name != root+name || h.Size > manifestMax {
		return m, broken("%q is where %s should be", h.Name, name)
	}
	body, err := io.ReadAll(t)
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil || m.Files < 0 || m.Bytes < 0 {
		return m, broken("%s cannot be read (%v)", name, err)
	}
	return m, nil
}

// next is the header of the next entry, which must be a plain file.
func next(t *tar.Reader) (*tar.Header, error) {
	h, err := t.Next()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, broken("it ends early")
	case err != nil:
		return nil, broken("%v", err)
	case h.Typeflag != tar.TypeReg:
		return nil, broken("%q is not a plain file", h.Name)
	}
	return h, nil
}

// files reads as many files as the manifest promises.
func files(t *tar.Reader, m Manifest, file func(string, io.Reader) error) error {
	seen, bytes := map[string]bool{}, int64(0)
	for range m.Files {
		h, err := next(t)
		if err != nil {
			return err
		}
		name, ours := strings.CutPrefix(h.Name, root)
		switch {
		case !ours || name != FormatFile && !fileName.MatchString(name):
			return broken("it holds %q, which does not belong into one", h.Name)
		case seen[name]:
			return broken("it holds %s twice", name)
		}
		seen[name] = true
		if bytes += h.Size; bytes > m.Bytes {
			return broken("its files are larger than it says")
		}
		from := io.Reader(t)
		if name == FormatFile {
			if from, err = format(t, m); err != nil {
				return err
			}
		}
		if err := file(name, from); errors.Is(err, io.ErrUnexpectedEOF) {
			return broken("it ends early, in %s", name)
		} else if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if bytes != m.Bytes || !seen[FormatFile] {
		return broken("files are missing")
	}
	return nil
}

// format checks that the file FORMAT says what the manifest says.
func format(t io.Reader, m Manifest) (io.Reader, error) {
	text, err := io.ReadAll(io.LimitReader(t, 32))
	if n, bad := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || bad != nil || n != m.Format {
		return nil, broken("FORMAT says %q and not %d", text, m.Format)
	}
	return strings.NewReader(string(text)), nil
}
