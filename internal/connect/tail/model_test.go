//go:build unix

package tail

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/connect"
)

// written is a file as its writer knows it.
type written struct {
	name   string
	open   string // a line that was begun
	seen   bool   // it was looked at since it is there
	behind bool   // something was written that was not taken
}

// TestEachLineIsTakenOnceWhateverHappensToItsFile writes, rotates, cuts and deletes files as
// people do, while the source reads, dies and comes back. What nobody could know of is left
// out: a file that comes and goes between two looks.
func TestEachLineIsTakenOnceWhateverHappensToItsFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := t.TempDir()
		d, in, now := dir{t, path}, newIntake(), time.Unix(1e9, 0)
		joins := rapid.Bool().Draw(rt, "lines are joined")
		s, err := New(Options{
			Path: []string{path + "/*.log"}, Tag: "*", ReadFromHead: rapid.Bool().Draw(rt, "from the head"), RotateWait: 5 * time.Second, RefreshInterval: 1,
			Now: func() time.Time { return now },
		})
		if err != nil {
			rt.Fatal(err)
		}
		if joins {
			s.o.Lines = func() connect.Lines { return &joined{} }
		}
		var r *reader
		start := func() {
			if r == nil {
				r = s.reader(in.cursors)
				r.block = make([]byte, s.o.BufferMaxSize+2)
				r.look(t.Context())
			}
		}
		stop := func() {
			if r != nil {
				for _, f := range r.files {
					_ = f.f.Close()
				}
				r = nil
			}
		}
		defer stop()
		files, want, n := []*written(nil), []string(nil), 0
		settle := func() {
			start()
			now = now.Add(1)
			for r.look(t.Context()); r.read(t.Context()); {
			}
			if err := in.Take(t.Context(), r.batch.records()...); err != nil {
				rt.Fatal(err)
			}
			r.batch.reset()
			for _, f := range files {
				f.seen, f.behind = true, false
			}
		}
		end := func() { // takes also what waits for more lines
			settle()
			now = now.Add(defaultFlush)
			settle()
		}
		settle() // the first start of all
		pick := func() *written {
			if len(files) == 0 || rapid.IntRange(0, 9).Draw(rt, "a new one") == 0 {
				n++
				files = append(files, &written{name: fmt.Sprintf("%d.log", n), behind: true})
				d.write(files[len(files)-1].name, "")
			}
			return files[rapid.IntRange(0, len(files)-1).Draw(rt, "file")]
		}
		line := func(f *written, end string) {
			n++
			text := fmt.Sprintf("%d %s", n, strings.Repeat("x", rapid.IntRange(0, 30).Draw(rt, "length")))
			d.append(f.name, text+end)
			if f.open, f.behind = f.open+text, true; end != "" {
				want, f.open = append(want, f.open), ""
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"line":  func(*rapid.T) { line(pick(), "\n") },
			"begin": func(*rapid.T) { line(pick(), "") },
			"many": func(*rapid.T) {
				f := pick()
				for range 50 {
					line(f, "\n")
				}
			},
			"read and take": func(*rapid.T) { settle() },
			"read, and die": func(*rapid.T) {
				start()
				now = now.Add(1)
				for r.look(t.Context()); r.read(t.Context()); {
				}
				stop()
			},
			"take, and die": func(*rapid.T) { settle(); stop() },
			"time":          func(*rapid.T) { now = now.Add(time.Second) },
			"rename to a name that is read": func(*rapid.T) {
				f := pick()
				n++
				name := fmt.Sprintf("%d.log", n)
				d.rename(f.name, name)
				f.name = name
			},
			"rotate": func(*rapid.T) {
				f := pick()
				if !f.seen || f.open != "" {
					rt.Skip()
				}
				n++
				d.rename(f.name, fmt.Sprintf("%s.%d", f.name, n))
				d.write(f.name, "")
				files[slices.Index(files, f)] = &written{name: f.name, behind: true}
			},
			"cut": func(*rapid.T) {
				f := pick()
				if f.behind || f.open != "" || r == nil {
					rt.Skip()
				}
				end()
				if err := os.Truncate(filepath.Join(path, f.name), 0); err != nil {
					rt.Fatal(err)
				}
			},
			"delete": func(*rapid.T) {
				f := pick()
				if r == nil || !f.seen || f.open != "" {
					rt.Skip()
				}
				end()
				if err := os.Remove(filepath.Join(path, f.name)); err != nil {
					rt.Fatal(err)
				}
				files = slices.DeleteFunc(files, func(g *written) bool { return g == f })
			},
		})
		settle()
		now = now.Add(time.Hour)
		settle() // ends what waits for more, and closes what is gone
		settle()
		close(in.taken)
		got := []string(nil)
		for text := range in.taken {
			_, text, _ = strings.Cut(text, `{"log":"`)
			got = append(got, strings.TrimSuffix(text, `"}`))
		}
		if !slices.Equal(sorted(got), sorted(want)) {
			rt.Fatalf("took %q, want %q", got, want)
		}
		for key := range in.cursors {
			if r.files[key] == nil && key != marker {
				rt.Fatalf("the cursor of %s is kept", key)
			}
		}
		for _, f := range r.files {
			if !f.gone.IsZero() {
				rt.Fatalf("%s is gone and open", f.path)
			}
		}
	})
}
