package tail

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// look finds out what became of the files that are read, and now and then whether there
// are new ones.
func (r *reader) look(ctx context.Context) {
	now, scan := r.o.Now(), !r.started
	for _, f := range r.order {
		if !f.closed && ctx.Err() == nil && r.lookAt(f, now) {
			scan = true
		}
	}
	r.order = slices.DeleteFunc(r.order, func(f *file) bool { return f.closed })
	if scan || !now.Before(r.refresh) {
		r.refresh = now.Add(r.o.RefreshInterval)
		r.scan(now)
	}
}

// lookAt looks at one file and reports whether another one may be at its path.
func (r *reader) lookAt(f *file, now time.Time) (moved bool) {
	info, err := os.Stat(f.path)
	switch there := err == nil; {
	case there && identify(info, f.path) == f.key:
		f.gone = time.Time{}
	default:
		if moved = f.gone.IsZero(); moved {
			f.gone = now
		} else if there && r.files[identify(info, f.path)] == nil && info.Mode().IsRegular() {
			moved = true // its successor has come
		}
		if info, err = f.f.Stat(); err != nil {
			r.warn(f.path, err)
			r.close(f)
			return true
		}
	}
	if size := info.Size(); size < f.at {
		r.restart(f, now)
	} else if size > f.seen {
		f.active = true
	}
	return moved
}

// scan opens the files that are new.
func (r *reader) scan(now time.Time) {
	if r.first {
		r.batch.part(r.o.Tag).keep(marker, []byte{cursorVersion})
	}
	followed := map[string]bool{} // paths of which a file was read before
	for _, f := range r.files {
		followed[f.path] = true
	}
	for _, c := range r.kept {
		followed[c.path] = true
	}
	for _, pattern := range r.o.Path {
		list, _ := filepath.Glob(pattern) // the pattern was tried by New
		for _, path := range list {
			if !r.excluded(path) {
				r.discover(path, followed[path], now)
			}
		}
	}
	if !r.started {
		r.missing(now)
	}
	r.started, r.first = true, false
}

// discover opens a file, unless it is read already.
func (r *reader) discover(path string, followed bool, now time.Time) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return // it vanished, or is none that has lines
	}
	key := identify(info, path)
	if f := r.files[key]; f != nil {
		if !f.gone.IsZero() {
			f.path, f.gone = path, time.Time{} // it was renamed
			r.keep(f)
		}
		return
	}
	if r.o.IgnoreOlder > 0 && info.ModTime().Before(now.Add(-r.o.IgnoreOlder)) {
		r.ignored[key] = true
		return
	}
	f := r.open(path, key)
	if f == nil {
		return
	}
	c, known := r.kept[key]
	delete(r.kept, key)
	delete(r.ignored, key)
	fromEnd := r.first && !r.o.ReadFromHead || !r.first && r.o.SkipNewContent && !followed
	switch {
	case known && f.continues(c):
	case !known && fromEnd:
		f.at = f.size()
		f.print = printOf(f.f, int(min(f.at, printBytesMax)))
	}
	f.tag = r.tagOf(path)
	r.follow(f)
}

// open opens a regular file; nil if it is not the one that was found.
func (r *reader) open(path, key string) *file {
	o, err := open(path)
	if err != nil {
		r.warn(path, err)
		return nil
	}
	info, err := o.Stat()
	if err != nil || !info.Mode().IsRegular() || identify(info, path) != key {
		_ = o.Close() // it is the next look's
		return nil
	}
	delete(r.warned, path)
	return &file{key: key, path: path, f: o}
}

func (f *file) size() int64 {
	info, err := f.f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// continues goes on at a cursor, if it is one of this file.
func (f *file) continues(c cursor) bool {
	if f.size() < c.at || printOf(f.f, c.print.size) != c.print {
		return false
	}
	f.at, f.skipping, f.print = c.at, c.skipping, c.print
	return true
}

// follow begins to read a file.
func (r *reader) follow(f *file) {
	f.active, f.seen = true, f.at
	if r.o.Lines != nil {
		f.lines = r.o.Lines()
	}
	r.files[f.key] = f
	r.order = append(r.order, f)
	r.keep(f)
}

// missing looks for the files that were read before and are not at their paths: one that
// was renamed since is read to its end.
func (r *reader) missing(now time.Time) {
	dirs := map[string][]fs.DirEntry{}
	for key, c := range r.kept {
		if r.ignored[key] {
			continue
		}
		dir := filepath.Dir(c.path)
		if _, read := dirs[dir]; !read {
			list, err := os.ReadDir(dir)
			if err != nil {
				r.warn(dir, err)
				continue // perhaps it comes back
			}
			dirs[dir] = list
		}
		if f := r.find(dirs[dir], dir, key); f != nil {
			if f.continues(c) {
				f.path, f.tag, f.gone = c.path, r.tagOf(c.path), now
				r.follow(f)
				continue
			}
			_ = f.f.Close() // it was only read
		}
		r.batch.part(r.o.Tag).keep(key, nil)
	}
	clear(r.kept)
}

func (r *reader) find(list []fs.DirEntry, dir, key string) *file {
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		if info, err := e.Info(); err == nil && identify(info, path) == key {
			return r.open(path, key)
		}
	}
	return nil
}

// warn says once that something cannot be read.
func (r *reader) warn(path string, err error) {
	if !r.warned[path] {
		r.warned[path] = true
		r.o.Log.Warn("this cannot be read and is tried again", "path", path, "error", err)
	}
}
