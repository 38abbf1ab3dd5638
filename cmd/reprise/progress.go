package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress is one line that changes in place on a terminal, and nothing
// elsewhere.
type progress struct {
	w     io.Writer
	live  bool
	there bool // on the terminal now
	shown time.Time
}

func newProgress(w io.Writer) *progress {
	file, ok := w.(*os.File)
	return &progress{w: w, live: ok && isTerminal(file)}
}

func (p *progress) show(text string) {
	if now := time.Now(); p.live && now.Sub(p.shown) > 100*time.Millisecond {
		p.shown, p.there = now, true
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	}
}

// hide takes it off the terminal, at the end or for a line of something else.
func (p *progress) hide() {
	if p.live && p.there {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.there = false
	}
}

// follow shows how something goes on in the server, by a bar, until it is over, or until
// ctx ends, which leaves it alone. now is how it is; ask reads how it is later.
func follow[T any](ctx context.Context, w io.Writer, now *T, over func(*T) bool, bar func(now *T, took time.Duration) string, ask func() (*T, error)) (*T, error) {
	p := newProgress(w)
	defer p.hide()
	for began := time.Now(); !over(now); {
		p.show(bar(now, time.Since(began)))
		select {
		case <-ctx.Done():
			return now, nil
		case <-time.After(150 * time.Millisecond):
		}
		next, err := ask()
		switch {
		case ctx.Err() != nil:
			return now, nil
		case err != nil:
			return now, err
		}
		now = next
	}
	return now, nil
}

// bar draws how much of something has come.
func bar(past, total int64) string {
	const width = 30
	full := width
	if total > 0 {
		full = int(min(past, total) * width / total)
	}
	return "[" + strings.Repeat("█", full) + strings.Repeat("░", width-full) + "]"
}

// pace tells how much comes in a second, and how long what is left takes, where so much
// has come in the time that was looked at.
func pace(come, left int64, took time.Duration) string {
	if took <= time.Second || come == 0 {
		return ""
	}
	rate := float64(come) / took.Seconds()
	return fmt.Sprintf(", %.0f/s, %s left", rate, span(time.Duration(float64(left)/rate*float64(time.Second))))
}
