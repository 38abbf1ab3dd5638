package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// pacer waits for points in time. Timers of the runtime are rounded to whole
// milliseconds while the process is otherwise idle, which is as long as what
// the latency phase measures; a timer of the kernel read through the network
// poller is not, and occupies no thread.
type pacer struct {
	timer   *os.File
	raw     syscall.RawConn
	release func() bool
}

func newPacer(ctx context.Context) (*pacer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating a timer: %w", err)
	}
	p := &pacer{timer: os.NewFile(uintptr(fd), "timer")}
	if p.raw, err = p.timer.SyscallConn(); err != nil {
		return nil, fmt.Errorf("creating a timer: %w", err)
	}
	p.release = context.AfterFunc(ctx, func() { _ = p.timer.Close() })
	return p, nil
}

func (p *pacer) close() {
	p.release()
	_ = p.timer.Close()
}

// until returns at due, at once when it has passed.
func (p *pacer) until(due time.Duration) error {
	left := due - gauge.Now()
	if left <= 0 {
		return nil
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}
	var failed error
	err := p.raw.Control(func(fd uintptr) { failed = unix.TimerfdSettime(int(fd), 0, &spec, nil) })
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("setting a timer: %w", err)
	}
	var expirations [8]byte
	if _, err := p.timer.Read(expirations[:]); err != nil {
		return fmt.Errorf("waiting for a timer: %w", err)
	}
	return nil
}
