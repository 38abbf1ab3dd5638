package main

import (
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
