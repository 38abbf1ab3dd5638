package filter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/record"
)

// GrepOptions are the settings of the filter grep.
type GrepOptions struct {
	Rules []GrepRule

	// LogicalOp is how the rules go together: and, or, or legacy ("" = legacy),
	// in which each Regex has to match, and no Exclude may.
	LogicalOp string
}

// GrepRule is a line Regex or Exclude: `key expression`, the key being a record
// accessor. A key that is not there does not match.
type GrepRule struct {
	Exclude bool
	Rule    string
}

type grep struct {
	rules []grepRule
	op    string
}

type grepRule struct {
	exclude bool
	path    record.Path
	expr    *parser.Expr
}

// NewGrep makes the filter that keeps and drops events by their values.
func NewGrep(o GrepOptions) (Filter, error) {
	g := &grep{op: strings.ToLower(o.LogicalOp)}
	var problems []error
	for _, r := range o.Rules {
		name := "regex"
		if r.Exclude {
			name = "exclude"
		}
		key, text, err := pair(name, r.Rule)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		rule := grepRule{exclude: r.Exclude}
		rule.path, err = record.ParsePath(key)
		if err != nil {
			problems = append(problems, err)
		}
		if rule.expr, err = parser.Compile(text); err != nil {
			problems = append(problems, err)
		}
		g.rules = append(g.rules, rule)
	}
	switch g.op {
	case "", "legacy":
		g.op = "legacy"
	case "and", "or":
		for _, r := range g.rules {
			if r.exclude != g.rules[0].exclude {
				problems = append(problems, errors.New("logical_op goes with regex or with exclude, not with both; use two filters"))
				break
			}
		}
	default:
		problems = append(problems, fmt.Errorf("logical_op %q is not known; it is and, or, or legacy", o.LogicalOp))
	}
	return g, named("grep", problems)
}

func (g *grep) Filter(in Input, out *Output) Verdict {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	found := 0
	for _, r := range g.rules {
		text, ok := s.plain(in.Event, r.path)
		if ok = ok && matches(r.expr, text, out); ok {
			found++
		}
		if g.op == "legacy" && ok == r.exclude {
			return Dropped
		}
	}
	if g.op == "legacy" || len(g.rules) == 0 {
		return Keep
	}
	wanted := found > 0
	if g.op == "and" {
		wanted = found == len(g.rules)
	}
	if wanted == g.rules[0].exclude {
		return Dropped
	}
	return Keep
}
