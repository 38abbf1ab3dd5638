package filter

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/record"
)

// tagBytesMax is the longest tag.
const tagBytesMax = 65531

// RewriteTagOptions are the settings of the filter rewrite_tag.
type RewriteTagOptions struct {
	Rules []string // `$key expression new_tag keep`; the first that matches is used
}

type rewriteTag struct {
	rules []tagRule
}

type tagRule struct {
	path record.Path
	expr *parser.Expr
	tag  record.Template
	keep bool
}

// NewRewriteTag makes the filter that puts events in again under other tags.
// The value of the key has to be a text.
func NewRewriteTag(o RewriteTagOptions) (Filter, error) {
	r := &rewriteTag{}
	var problems []error
	if len(o.Rules) == 0 {
		problems = append(problems, fmt.Errorf("rule is missing; write rule $key expression new_tag true"))
	}
	for _, text := range o.Rules {
		rule, err := newTagRule(text)
		if err != nil {
			problems = append(problems, err)
		}
		r.rules = append(r.rules, rule)
	}
	return r, named("rewrite_tag", problems)
}

// newTagRule reads a rule. What stands between the key and the last two words
// is the expression, in which spaces may stand.
func newTagRule(text string) (r tagRule, err error) {
	key, rest := cutKey(text)
	words := strings.Fields(rest)
	if len(words) < 3 {
		return r, fmt.Errorf("rule %q is not: $key expression new_tag keep", text)
	}
	keep, tag := words[len(words)-1], words[len(words)-2]
	expr := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), keep)), tag))
	switch strings.ToLower(keep) {
	case "true", "on", "yes":
		r.keep = true
	case "false", "off", "no":
	default:
		return r, fmt.Errorf("rule %q: %q, its last word, is neither true nor false: it says whether the record also stays under its tag", text, keep)
	}
	if r.path, err = record.ParsePath(key); err != nil {
		return r, err
	}
	if r.expr, err = parser.Compile(unquote(expr)); err != nil {
		return r, err
	}
	r.tag, err = record.ParseTemplate(unquote(tag))
	return r, err
}

func (r *rewriteTag) Filter(in Input, out *Output) Verdict {
	for _, rule := range r.rules {
		text, ok := record.Text(rule.path.Find(in.Body))
		if !ok {
			continue
		}
		at, err := rule.expr.Find(text)
		if err != nil {
			out.Trouble = err
		}
		if at == nil {
			continue
		}
		tag, _ := rule.tag.Append(nil, in.Tag, in.Body, func(n int) []byte {
			if 2*n+1 >= len(at) || at[2*n] < 0 {
				return nil
			}
			return text[at[2*n]:at[2*n+1]]
		})
		if len(tag) == 0 || len(tag) > tagBytesMax {
			out.Trouble = fmt.Errorf("filter rewrite_tag: a new tag has %d bytes; 1 to %d are allowed", len(tag), tagBytesMax)
			return Keep
		}
		out.Again = append(out.Again, Tagged{Tag: string(tag), Event: append([]byte(nil), in.Raw...)})
		if rule.keep {
			return Keep
		}
		return Dropped
	}
	return Keep
}
