package embedded

import (
	"errors"
	"io"
	iofs "io/fs"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
)

// claim makes a directory this process's own: by a lock on the file LOCK in it, and
// one on the directory itself, which stays when somebody deletes LOCK.
type claim struct {
	fs  vfs.FS
	dir string

	mu   sync.Mutex
	lock io.Closer
	root vfs.File          // locked; nil = the file system locks no directories
	ids  map[string]fileID // what the names below dir stood for
}

// fileID tells whether a name still stands for the same file.
type fileID struct{ device, inode uint64 }

const (
	lockName = "LOCK"
	dataName = "data"
)

// claimDir claims a directory, or says that it is in use (Exists).
func claimDir(fs vfs.FS, dir string) (*claim, error) { return claimFor(fs, dir, false) }

// claimFor claims a directory. The lock on the directory itself is enough for who only
// reads, where LOCK cannot be written.
func claimFor(fs vfs.FS, dir string, reading bool) (*claim, error) {
	c := &claim{fs: fs, dir: dir, ids: map[string]fileID{}}
	root, err := fs.OpenDir(dir)
	if err != nil {
		return nil, job.Errorf(job.Invalid, "opening the data directory %s: %v", dir, err)
	}
	if locked, err := lockFolder(root); err != nil {
		return nil, errors.Join(c.inUse(err), root.Close())
	} else if locked {
		c.root = root
	} else if err := root.Close(); err != nil {
		return nil, err
	}
	c.lock, err = fs.Lock(c.path(lockName))
	if _, readOnly := errors.AsType[*iofs.PathError](err); readOnly && reading && c.root != nil {
		c.lock = nil
		return c, nil
	}
	if err != nil {
		return nil, errors.Join(c.inUse(err), c.Close())
	}
	c.keep(".")
	c.keep(lockName)
	return c, nil
}

// inUse tells a lock that another process has from one that cannot be had.
func (c *claim) inUse(err error) error {
	if _, ok := errors.AsType[*iofs.PathError](err); ok {
		return job.Errorf(job.Invalid, "the data directory %s cannot be locked: %v; let the server write there, or choose another directory with --root-dir", c.dir, err)
	}
	return job.Errorf(job.Exists,
		"the data directory %s is in use by another process (%v); stop that one, or choose another directory with --root-dir", c.dir, err)
}

func (c *claim) path(name string) string { return c.fs.PathJoin(c.dir, name) }

// keep notes what a name stands for.
func (c *claim) keep(name string) {
	if id, ok := c.look(name); ok {
		c.ids[name] = id
	}
}

func (c *claim) look(name string) (fileID, bool) {
	info, err := c.fs.Stat(c.path(name))
	if err != nil {
		return fileID{}, false
	}
	return idOf(info)
}

// check reports that the directory, or what is in it, is not what was claimed. A LOCK
// that was deleted is made again where the directory itself is locked: nobody else can
// have come in.
func (c *claim) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range []string{".", dataName, lockName} {
		id, kept := c.ids[name]
		if now, ok := c.look(name); !kept || ok && now == id {
			continue
		}
		if name != lockName {
			return job.Errorf(job.Unavailable,
				"%s was deleted, moved or replaced under the server; put it back, or stop the server and restore a backup", c.path(name))
		}
		if c.root == nil {
			return job.Errorf(job.Unavailable,
				"%s was deleted or replaced under the server, and another server may work here; stop both, and start one", c.path(name))
		}
		_ = c.lock.Close() // of what is deleted
		lock, err := c.fs.Lock(c.path(name))
		if err != nil {
			c.lock = io.NopCloser(nil)
			return job.Errorf(job.Unavailable, "%s was deleted under the server and cannot be locked again (%v); stop whoever uses this directory", c.path(name), err)
		}
		c.lock = lock
		c.keep(name)
	}
	return nil
}

// Close gives the directory back.
func (c *claim) Close() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lock != nil {
		err = c.lock.Close()
	}
	if c.root != nil {
		err = errors.Join(err, c.root.Close())
	}
	c.lock, c.root = nil, nil
	return err
}
