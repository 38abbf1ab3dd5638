package httpapi

import (
	"strings"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/job"
)

// Live is what can change while a handler works.
type Live struct{ now atomic.Pointer[liveOptions] }

type liveOptions struct {
	hosts map[string]bool // lower case
	count job.Count
	retry job.Retry

	strict bool
}

// Set lets new values hold from now on; they are those of Options.
func (l *Live) Set(allowHosts []string, count job.Count, retry job.Retry, strict bool) {
	o := &liveOptions{hosts: map[string]bool{}, count: count, retry: retry, strict: strict}
	for _, name := range allowHosts {
		o.hosts[strings.ToLower(name)] = true
	}
	l.now.Store(o)
}
