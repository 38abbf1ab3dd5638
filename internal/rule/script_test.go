package rule

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts in testdata print into them")

// TestScripts plays testdata/*.txt. A line is a command, `# ...` a remark, and
// `= ...` what the command before it prints. Write new ones without the
// printed lines, run with -rewrite, and read the difference.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(newScript(t), string(b))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if got != string(b) {
				t.Errorf("%s now reads:\n%s", file, got)
			}
		})
	}
}

// script is a world that is told what to do in words.
type script struct {
	*world
	tokens map[string]job.Token // by job and holder: the latest
	args   map[string]string    // of the line
	out    strings.Builder
}

func newScript(t *testing.T) *script {
	return &script{world: newWorld(t), tokens: map[string]job.Token{}}
}

// play returns the script with what it prints now.
func play(s *script, text string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "=") {
			continue
		}
		s.out.WriteString(line)
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			s.command(words)
		}
	}
	return s.out.String()
}

func (s *script) print(format string, args ...any) {
	fmt.Fprintf(&s.out, "= "+format+"\n", args...)
}

// command runs one line: verb, names, then key=value.
func (s *script) command(words []string) {
	s.args = map[string]string{}
	var names []string
	for _, word := range words[1:] {
		if key, value, ok := strings.Cut(word, "="); ok {
			s.args[key] = value
		} else if word != "by" {
			names = append(names, word)
		}
	}
	names = append(names, "", "")
	name, holder := names[0], names[1]
	switch words[0] {
	case "queue":
		s.furnish()
	case "put":
		s.putAt(s.place(), name, s.wanted)
		s.show(name)
	case "take":
		s.takeNext(name)
	case "ok":
		s.settle(SettleOK, name, holder)
	case "fail":
		s.settle(SettleRetry, name, holder)
	case "release":
		s.settle(SettleRelease, name, holder)
	case "kill":
		s.settle(SettleDead, name, holder)
	case "disconnect":
		s.step(name, Command{Verb: Lapse, Holder: holder, Ending: job.ByDisconnect})
	case "restart":
		s.start++
		s.step(name, Command{Verb: Lapse, Holder: holder, Ending: job.ByRestart})
	case "offer":
		s.step(name, Command{Verb: Offer})
	case "revive":
		s.step(name, Command{Verb: Revive, Allow: holder == "anyway"})
	case "cancel":
		s.step(name, Command{Verb: Cancel})
	case "tick":
		s.tickTo(s.now + s.span(name))
	case "line":
		s.print("%s", orElse(strings.Join(s.line(Seeker{Holder: name}), " "), "nothing"))
	default:
		s.Fatalf("unknown command %q", words[0])
	}
}

func (s *script) span(text string) job.Millis {
	if text == "" {
		return 0
	}
	d, err := job.ParseDuration(text)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

func (s *script) at(key string) job.Millis {
	if s.args[key] == "" {
		return 0
	}
	return s.now + s.span(s.args[key])
}

func (s *script) number(key string) int {
	n, err := strconv.Atoi("0" + s.args[key])
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *script) place() job.Place {
	p, _ := job.ParsePlace(s.args["place"])
	return p
}

func (s *script) wanted(j *job.Job) {
	j.Group, j.Priority = s.args["group"], uint16(s.number("priority"))
	j.ReadyAt, j.ExpiresAt, j.GraceUntil = s.at("due"), s.at("expires"), s.at("grace")
	j.Copies = uint8(s.number("copies"))
}

// furnish sets the queue; retry=... is the policy as configuration writes it,
// without spaces.
func (s *script) furnish() {
	q := s.queue
	q.Order = job.Order(slices.Index([]string{"none", "start", "strict"}, orElse(s.args["order"], "none")))
	q.OnDead = job.OnDead(slices.Index([]string{"skip", "block", "park"}, orElse(s.args["on_dead"], "skip")))
	q.Concurrency, q.RunTimeout = s.number("concurrency"), s.span(s.args["run_timeout"])
	if text := s.args["retry"]; text != "" {
		r, err := job.ParseRetry([]byte(text))
		if err != nil {
			s.Fatal(err)
		}
		q.Retry = r
	}
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// takeNext gives a holder the head of the line.
func (s *script) takeNext(holder string) {
	line := s.line(Seeker{Holder: holder})
	if len(line) == 0 {
		s.print("nothing")
		return
	}
	s.tokens[line[0]+holder] = s.take(line[0], holder)
	s.show(line[0])
}

func (s *script) settle(v Verb, name, holder string) {
	s.step(name, Command{
		Verb: v, Token: s.tokens[name+holder], Place: s.place(), RetryAt: s.at("retry_in"),
		After: s.span(s.args["after"]), Failure: job.Failure{Type: "E"},
	})
}

func (s *script) step(name string, c Command) {
	s.Helper()
	if err := s.try(name, c); err != nil {
		s.print("refused: %s", [...]string{"internal", "invalid", "not found", "exists", "wrong state", "superseded", "token needed", "over limit"}[job.KindOf(err)])
		return
	}
	s.show(name)
}

func (s *script) show(name string) { s.print("%s %s", name, s.tell(name)) }

// tickTo moves the clock from deadline to deadline, as the engine does, and
// tells what happened when.
func (s *script) tickTo(end job.Millis) {
	for {
		name, verb, at := s.next()
		if name == "" || at > end {
			s.tick(end - s.now)
			return
		}
		s.tick(max(at-s.now, 0))
		s.do(name, Command{Verb: verb})
		s.print("at %s %s: %s %s", s.now-dawn, verb, name, s.tell(name))
	}
}

func (s *script) next() (name string, verb Verb, at job.Millis) {
	for _, n := range s.namesByID() {
		for hand, due := range EntriesOf(s.jobs[n]).Timer {
			if due > 0 && (at == 0 || due < at) {
				name, verb, at = n, [Hands]Verb{Promote, Lapse, Lapse, Expire, Purge}[hand], due
			}
		}
	}
	return name, verb, at
}
