// Package pattern tries the patterns of retry rules on the messages of failures (core.md
// section 9), for the engine, whose committer runs no expressions.
package pattern

import (
	"regexp"
	"sync"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Cache holds compiled patterns by their text, because the policy of a job is read from
// disk again and again. Any goroutine may use it.
type Cache struct {
	mu       sync.Mutex // guards compiled
	compiled map[string]*regexp.Regexp
}

// cacheMax bounds what is kept; beyond it, all is forgotten.
const cacheMax = 1000

// Match tries patterns on the head of a message.
func (p *Cache) Match(list []string, message string) rule.Match {
	message = message[:min(len(message), job.MatchBytesMax)]
	found := make(map[string]bool, len(list))
	for _, text := range list {
		re := p.get(text)
		found[text] = re != nil && re.MatchString(message)
	}
	return func(pattern string) (fits, known bool) {
		fits, known = found[pattern]
		return fits, known
	}
}

// get compiles a pattern; nil if it is none, which only a policy stored by
// another version can have.
func (p *Cache) get(text string) *regexp.Regexp {
	p.mu.Lock()
	defer p.mu.Unlock()
	if re, ok := p.compiled[text]; ok {
		return re
	}
	re, err := job.CompilePattern(text)
	if err != nil {
		re = nil
	}
	if p.compiled == nil || len(p.compiled) >= cacheMax {
		p.compiled = map[string]*regexp.Regexp{}
	}
	p.compiled[text] = re
	return re
}
