package bench

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// progress writes lines for people who wait.
type progress struct {
	mu  sync.Mutex
	out io.Writer
}

func newProgress(out io.Writer) *progress { return &progress{out: out} }

func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A lost progress line is not worth ending a run for.
	_, _ = fmt.Fprintf(p.out, "%7.1fs  %s\n", gauge.Now().Round(100*time.Millisecond).Seconds(), fmt.Sprintf(format, args...))
}
