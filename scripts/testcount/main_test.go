package main

import (
	"strings"
	"testing"
	"time"
)

const events = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestWhole"}
{"Action":"run","Package":"m/a","Test":"TestWhole/part"}
{"Action":"run","Package":"m/a","Test":"TestLater"}
{"Action":"pause","Package":"m/a","Test":"TestLater"}
{"Action":"output","Package":"m/a","Test":"TestWhole/part","Output":"    x_test.go:1: 700 histories, 9 steps\n"}
`

// A person who waits is told what runs, and only when nothing else was printed.
func TestATickTellsWhatRuns(t *testing.T) {
	var out strings.Builder
	lines, ticks, ended := make(chan string), make(chan time.Time), make(chan struct{})
	r := &reader{out: &out, prefix: "m", show: " histories, ", pkgs: map[string]*pkg{}, builds: map[string]*strings.Builder{}, shown: map[string]bool{}}
	go func() { r.read(lines, ticks); close(ended) }()
	write := func(text string) {
		for line := range strings.Lines(text) {
			lines <- line
		}
	}
	write(events)
	ticks <- time.Time{}
	write(`{"Action":"pass","Package":"m/a","Test":"TestWhole/part"}
{"Action":"pass","Package":"m/a","Test":"TestWhole"}
{"Action":"pass","Package":"m/a","Test":"TestLater"}
{"Action":"pass","Package":"m/a","Elapsed":1}
not an event
`)
	ticks <- time.Time{} // a package was printed since
	ticks <- time.Time{}
	close(lines)
	<-ended
	want := `...  0 passed, 0 failed so far; running: a TestWhole/part
ok   a                                       1.00s  2 passed
  x_test.go:1: 700 histories, 9 steps
not an event
...  2 passed, 0 failed so far; building
`
	if out.String() != want {
		t.Errorf("it printed\n%s\nnot\n%s", out.String(), want)
	}
}
