package fluentconf

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Remark is something to tell about a place.
type Remark struct {
	At   Place
	Text string
}

func (r Remark) String() string { return r.At.String() + ": " + r.Text }

// remarksMax is how many remarks of a sort are kept; nobody reads more.
const remarksMax = 200

// Report gathers what there is to tell about a configuration: problems, with which
// it is refused, and notices, with which it is not.
type Report struct {
	problems, notices []Remark
	more              int // problems that are not kept
}

// Problem adds one: what is wrong, and what to do.
func (r *Report) Problem(at Place, format string, args ...any) {
	if len(r.problems) < remarksMax {
		r.problems = append(r.problems, Remark{at, fmt.Sprintf(format, args...)})
	} else {
		r.more++
	}
}

// Notice adds one.
func (r *Report) Notice(at Place, format string, args ...any) {
	if n := (Remark{at, fmt.Sprintf(format, args...)}); len(r.notices) < remarksMax && !slices.Contains(r.notices, n) {
		r.notices = append(r.notices, n)
	}
}

// Problems are the problems as they stand in the files.
func (r *Report) Problems() []Remark { return inOrder(r.problems) }

// Notices are the notices as they stand in the files.
func (r *Report) Notices() []Remark { return inOrder(r.notices) }

// Err has all problems, each on a line of its own; nil if there are none.
func (r *Report) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return (*refusal)(r)
}

type refusal Report

func (r *refusal) Error() string {
	var b strings.Builder
	for i, p := range inOrder(r.problems) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
	}
	if r.more > 0 {
		fmt.Fprintf(&b, "\nand %d more", r.more)
	}
	return b.String()
}

// inOrder sorts by the lines of each file; files stay in the order in which they came.
func inOrder(remarks []Remark) []Remark {
	rank := map[string]int{}
	for _, r := range remarks {
		if _, known := rank[r.At.File]; !known {
			rank[r.At.File] = len(rank)
		}
	}
	sorted := slices.Clone(remarks)
	slices.SortStableFunc(sorted, func(a, b Remark) int {
		return cmp.Or(rank[a.At.File]-rank[b.At.File], a.At.Line-b.At.Line)
	})
	return sorted
}

// quote writes what somebody wrote into a message, short whatever it is.
func quote(s string) string { return strconv.Quote(short(s)) }

func short(s string) string {
	const most = 64
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
