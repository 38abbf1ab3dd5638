package jobs_test

import (
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/reprisehq/reprise/internal/door/jobs"
)

// TestALargeBodyIsNotKept: a reader waits in a pool for its next body, and must
// not keep a large one in memory until then.
func TestALargeBodyIsNotKept(t *testing.T) {
	var r jobs.Reader
	r.Body.WriteString(with(`"group":"` + strings.Repeat("g", 2<<20) + `"`))
	body := weak.Make(&r.Body.Bytes()[0])
	if _, err := r.Enqueue(""); err == nil {
		t.Fatal("a group of 2 MiB was taken in")
	}
	r.Reset(false)
	runtime.GC()
	if body.Value() != nil {
		t.Error("the reader still holds the body")
	}
	runtime.KeepAlive(&r)
}
