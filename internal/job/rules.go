package job

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/spell"
)

// Rules are what a policy does about particular failures: the first that
// matches decides (spec/core.md section 6, point 3). They are replaced whole,
// like a curve; an empty list lifts those of the wider policy.
type Rules []Rule

// Rule is one line of Rules: when a failure is so, do that.
type Rule struct {
	When When
	Do   Do

	Limit            Limit  // of DoRetry: instead of the policy's; it counts all charged failures
	Curve            *Curve // of DoRetry: instead of the policy's
	IgnoreRetryAfter bool   // of DoRetry: respect_retry_after false, so a target's wish is not heard, and holds nothing
	Delay            Millis // of DoRelease: not before then; of DoHold: the least hold
}

// When is what a failure must be like; all that is set must fit. Nothing set
// fits every failure.
type When struct {
	ErrorTypes []string // one of them, exactly
	Message    string   // RE2, anywhere in the first MatchBytesMax bytes of the message
	Status     []Range  // HTTP status that a target answered
	ExitCode   []Range  // of a command
	Timeout    Answer   // whether the attempt took too long
}

// IsZero reports whether every failure fits.
func (w *When) IsZero() bool {
	return len(w.ErrorTypes) == 0 && w.Message == "" && len(w.Status) == 0 && len(w.ExitCode) == 0 && w.Timeout == Unsaid
}

// Limits on what rules may hold, so that looking through them is cheap
// wherever it happens.
const (
	RulesMax        = 32      // of one policy
	AlternativesMax = 32      // of one condition
	TextBytesMax    = 1 << 10 // of an error type or a pattern
	MatchBytesMax   = 4 << 10 // of a message that a pattern looks at (spec/core.md section 9)

	patternStepsMax = 1000 // size of a compiled pattern
)

// Do is what a rule does with the job.
type Do uint8

// The choices. A rule of DoUnset is none.
const (
	DoUnset   Do = iota
	DoRetry      // charged and tried again, by the rule's own curve and limit if it has them
	DoDead       // given up, reason killed
	DoRelease    // given back without blame after Delay, at most ReleasesMax times a job
	DoHold       // charged and tried again by the policy; meanwhile its group, or queue, is held
)

// ReleasesMax is how often rules may release one job (release_limit).
const ReleasesMax = 1000

var doNames = [...]string{"", "retry", "dead", "release", "hold"}

// String writes the choice as ParseDo reads it.
func (d Do) String() string { return nameOf(doNames[:], uint8(d)) }

// ParseDo reads retry, dead, release or hold.
func ParseDo(s string) (Do, error) {
	at, ok := indexOf(doNames[:], s)
	if !ok {
		return DoUnset, Errorf(Invalid, "do %q: use one of %s%s", shorten(s), strings.Join(doNames[1:], ", "), spell.Hint(s, doNames[1:]))
	}
	return Do(at), nil
}

// Answer is yes, no, or (the zero value) not said.
type Answer uint8

// The answers.
const (
	Unsaid Answer = iota
	Yes
	No
)

// AnswerOf is the answer to a question that was asked.
func AnswerOf(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// Range is numbers from Lo to Hi, both included.
type Range struct{ Lo, Hi uint16 }

// Has reports whether n is in the range.
func (r Range) Has(n int) bool { return n >= int(r.Lo) && n <= int(r.Hi) }

// String writes 429, 5xx or 500-504.
func (r Range) String() string {
	lo := strconv.Itoa(int(r.Lo))
	switch {
	case r.Lo == r.Hi:
		return lo
	case r.Lo%100 == 0 && r.Hi == r.Lo+99 && r.Lo > 0 && r.Lo < 1000:
		return lo[:1] + "xx"
	}
	return lo + "-" + strconv.Itoa(int(r.Hi))
}

// parseRange reads what String writes, within 1 and most.
func parseRange(s string, most uint16) (r Range, ok bool) {
	lo, hi, isRange := strings.Cut(s, "-")
	if class, isClass := strings.CutSuffix(s, "xx"); isClass {
		lo, hi, isRange = class+"00", class+"99", true
	}
	if !isRange {
		hi = lo
	}
	a, errLo := strconv.ParseUint(lo, 10, 16)
	b, errHi := strconv.ParseUint(hi, 10, 16)
	if errLo != nil || errHi != nil || a < 1 || b > uint64(most) || a > b {
		return Range{}, false
	}
	return Range{uint16(a), uint16(b)}, true
}

// The highest numbers that conditions know; none of either is 0.
const (
	statusMax   = 999
	exitCodeMax = 255
)

// Patterns returns the message patterns of the rules, each once.
func (rs Rules) Patterns() (list []string) {
	for i := range rs {
		if p := rs[i].When.Message; p != "" && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// CompilePattern compiles a message pattern, within the limits that bound what
// matching can cost.
func CompilePattern(text string) (*regexp.Regexp, error) {
	if len(text) > TextBytesMax {
		return nil, Errorf(Invalid, "the expression has %d bytes; the most is %d", len(text), TextBytesMax)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, Errorf(Invalid, "%s; expressions are RE2, without look-around and back-references", shorten(err.Error()))
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > patternStepsMax {
		return nil, Errorf(Invalid, "the expression %q is too large; use fewer repetitions", shorten(text))
	}
	return regexp.Compile(text)
}
