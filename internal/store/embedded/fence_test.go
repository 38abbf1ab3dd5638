package embedded

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestAFencedHandleTouchesNoFile: a handle that was given up after a failed
// commit may go on behind our back, while a new one works in its directory (I5).
func TestAFencedHandleTouchesNoFile(t *testing.T) {
	const category = vfs.WriteCategoryUnspecified
	mem := vfs.NewCrashableMem()
	behind := &fence{FS: mem}
	f, err := behind.Create("kept", category)
	if err != nil {
		t.Fatal(err)
	}
	d, err := behind.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Write([]byte("safe")); err == nil {
		err = errors.Join(f.Sync(), d.Sync())
	}
	if err == nil {
		_, err = f.Write([]byte(", not synced"))
	}
	if err != nil {
		t.Fatal("before it was fenced:", err)
	}
	behind.down.Store(true)
	if err := d.Sync(); err != nil { // Pebble would end the process: it is told nothing
		t.Errorf("sync of a directory: %v", err)
	}
	for name, try := range map[string]func() error{
		"write":       func() error { _, err := f.Write([]byte("!")); return err },
		"write at":    func() error { _, err := f.WriteAt([]byte("!"), 0); return err },
		"sync":        func() error { return f.Sync() },
		"sync data":   func() error { return f.SyncData() },
		"sync to":     func() error { _, err := f.SyncTo(8); return err },
		"create":      func() error { _, err := behind.Create("new", category); return err },
		"create over": func() error { _, err := behind.Create("kept", category); return err },
		"open":        func() error { _, err := behind.OpenReadWrite("new", category); return err },
		"reuse":       func() error { _, err := behind.ReuseForWrite("kept", "new", category); return err },
		"link":        func() error { return behind.Link("kept", "new") },
		"rename":      func() error { return behind.Rename("kept", "new") },
		"remove":      func() error { return behind.Remove("kept") },
		"remove all":  func() error { return behind.RemoveAll("") },
	} {
		if err := try(); !errors.Is(err, errFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names, err := mem.List(""); err != nil || !slices.Equal(names, []string{"kept"}) {
		t.Errorf("the directory holds %v, %v", names, err)
	}
	after, err := mem.CrashClone(vfs.CrashCloneCfg{}).Open("kept")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(after); err != nil || string(text) != "safe" {
		t.Errorf("a power cut leaves %q, %v", text, err)
	}
}
