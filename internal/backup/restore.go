package backup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Extract unpacks a backup into a directory, which must exist and not hold any
// of its files. It is on disk when it returns. FORMAT is written last, so that
// a server does not take half of a backup for a directory of its own; after an
// error what was written is removed again. begin may refuse once the manifest
// is known.
func Extract(r io.Reader, dir string, begin func(Manifest) error) (m Manifest, err error) {
	var made []string
	defer func() {
		if err != nil {
			for i := len(made) - 1; i >= 0; i-- {
				err = errors.Join(err, os.Remove(made[i]))
			}
		}
	}()
	var formatText []byte
	m, err = read(r, func(m Manifest) error {
		if err := begin(m); err != nil {
			return err
		}
		data := filepath.Join(dir, "data")
		if err := os.Mkdir(data, 0o700); err != nil {
			return err
		}
		made = append(made, data)
		return nil
	}, func(name string, from io.Reader) error {
		if name == FormatFile {
			formatText, err = io.ReadAll(from)
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		return create(path, from, func() { made = append(made, path) })
	})
	if err != nil {
		return m, err
	}
	if err := syncDir(filepath.Join(dir, "data")); err != nil {
		return m, err
	}
	path := filepath.Join(dir, FormatFile)
	if err := create(path, bytes.NewReader(formatText), func() { made = append(made, path) }); err != nil {
		return m, err
	}
	return m, syncDir(dir)
}

// create writes a new file and syncs it.
func create(path string, from io.Reader, made func()) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	made()
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Save writes a backup to a file so that the file is there whole or not
// at all: under another name first, checked, synced and then renamed. A file
// that exists is refused, and nobody is asked for what cannot be written.
func Save(path string, ask func() (io.ReadCloser, error)) (m Manifest, size int64, err error) {
	if _, err := os.Lstat(path); err == nil {
		return m, 0, fmt.Errorf("%s exists already; give another name, or remove it", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.part")
	if err != nil {
		return m, 0, err
	}
	defer func() {
		_ = f.Close()
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	from, err := ask()
	if err != nil {
		return m, 0, err
	}
	defer func() { _ = from.Close() }()
	to := &written{to: f}
	if m, err = Check(io.TeeReader(from, to)); err != nil {
		return m, 0, fmt.Errorf("the backup is not complete and was removed: %w", cmp.Or(to.err, err))
	}
	info, err := f.Stat()
	if err != nil {
		return m, 0, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return m, 0, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return m, 0, err
	}
	return m, info.Size(), syncDir(filepath.Dir(path))
}

// written remembers why it could not write, which is not the archive's fault.
type written struct {
	to  io.Writer
	err error
}

func (w *written) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.err = err
	return n, err
}
