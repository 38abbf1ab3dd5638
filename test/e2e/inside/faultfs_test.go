package inside

import (
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What a file system is asked to do, in the words of the plans below.
const (
	opWrite  = "write"
	opTorn   = "torn write" // half of the bytes arrive
	opSync   = "sync"
	opCreate = "create"
	opRename = "rename"
	opRemove = "remove"
	opRead   = "read"
	opOpen   = "open"
	opList   = "list"
)

// step says which operations of a kind fail: those that fails names by their
// number, from 1, but no more than most.
type step struct {
	kind  string
	most  int
	fails func(n int) bool
}

// plan is a list of steps. The next one begins when the one before it is over.
type plan struct {
	mu    sync.Mutex // guards what follows
	steps []step
	seen  int            // operations of the kind of the first step
	hit   map[string]int // failures so far, by kind
	begun chan struct{}  // closed with the first failure
	over  chan struct{}  // closed when no step is left
}

func newPlan() *plan {
	return &plan{hit: map[string]int{}, begun: make(chan struct{}), over: make(chan struct{})}
}

// arm begins a plan.
func (p *plan) arm(steps ...step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = steps
}

// disarm ends a plan and returns how many operations of a kind it let fail.
func (p *plan) disarm(kind string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps = nil
	return p.hit[kind]
}

func (p *plan) check(kind string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.steps) == 0 || p.steps[0].kind != kind {
		return nil
	}
	s := &p.steps[0]
	if p.seen++; !s.fails(p.seen) {
		return nil
	}
	if len(p.hit) == 0 {
		close(p.begun)
	}
	p.hit[kind]++
	if s.most--; s.most == 0 {
		p.steps, p.seen = p.steps[1:], 0
		if len(p.steps) == 0 {
			close(p.over)
		}
	}
	return syscall.EIO
}

// faultFS is a file system whose operations fail by a plan.
type faultFS struct {
	vfs.FS
	plan *plan
}

func (f *faultFS) file(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f.plan}, nil
}

// path is the error as the operating system would give it.
func path(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.plan.check(opCreate); err != nil {
		return nil, path("open", name, err)
	}
	return f.file(f.FS.Create(name, c))
}

func (f *faultFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.plan.check(opCreate); err != nil {
		return nil, path("rename", from, err)
	}
	return f.file(f.FS.ReuseForWrite(from, to, c))
}

func (f *faultFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.plan.check(opOpen); err != nil {
		return nil, path("open", name, err)
	}
	return f.file(f.FS.Open(name, opts...))
}

func (f *faultFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.plan.check(opOpen); err != nil {
		return nil, path("open", name, err)
	}
	return f.file(f.FS.OpenReadWrite(name, c, opts...))
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) {
	if err := f.plan.check(opOpen); err != nil {
		return nil, path("open", name, err)
	}
	return f.file(f.FS.OpenDir(name))
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.plan.check(opRename); err != nil {
		return path("rename", from, err)
	}
	return f.FS.Rename(from, to)
}

func (f *faultFS) Remove(name string) error {
	if err := f.plan.check(opRemove); err != nil {
		return path("remove", name, err)
	}
	return f.FS.Remove(name)
}

func (f *faultFS) List(dir string) ([]string, error) {
	if err := f.plan.check(opList); err != nil {
		return nil, path("readdirent", dir, err)
	}
	return f.FS.List(dir)
}

func (f *faultFS) Unwrap() vfs.FS { return f.FS }

// Lock is not part of what fails: without a lock there is no server.
func (f *faultFS) Lock(name string) (io.Closer, error) { return f.FS.Lock(name) }

type faultFile struct {
	vfs.File
	plan *plan
}

// write fails before anything is written, or in the middle.
func (f *faultFile) write(b []byte, write func([]byte) (int, error)) (int, error) {
	if err := f.plan.check(opWrite); err != nil {
		return 0, err
	}
	if err := f.plan.check(opTorn); err != nil {
		n, _ := write(b[:len(b)/2])
		return n, err
	}
	return write(b)
}

func (f *faultFile) Write(b []byte) (int, error) { return f.write(b, f.File.Write) }

func (f *faultFile) WriteAt(b []byte, at int64) (int, error) {
	return f.write(b, func(b []byte) (int, error) { return f.File.WriteAt(b, at) })
}

func (f *faultFile) Read(b []byte) (int, error) {
	if err := f.plan.check(opRead); err != nil {
		return 0, err
	}
	return f.File.Read(b)
}

func (f *faultFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.plan.check(opRead); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}

func (f *faultFile) Sync() error {
	if err := f.plan.check(opSync); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultFile) SyncData() error {
	if err := f.plan.check(opSync); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *faultFile) SyncTo(length int64) (bool, error) {
	if err := f.plan.check(opSync); err != nil {
		return false, err
	}
	return f.File.SyncTo(length)
}
