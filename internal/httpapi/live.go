package httpapi

import (
	"strings"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/job"
)

// Changeable are the options that can change while a handler works.
type Changeable struct {
	// AllowHosts are names that Host and Origin may hold beside the loopback
	// names and the address that was connected to.
	AllowHosts []string
	// BackoffCount is how `backoff` of an enqueue counts attempts.
	BackoffCount job.Count
	// Retry is the server's policy, which a preview falls back to. Zero = the default.
	Retry job.Retry
	// Strict refuses bodies with members that their call does not know.
	Strict bool
}

// Live holds them.
type Live struct{ now atomic.Pointer[liveOptions] }

type liveOptions struct {
	Changeable
	hosts map[string]bool // lower case
}

// allows reports whether a name, in lower case, is one of this server (--allow-host).
func (l *Live) allows(name string) bool { return l.now.Load().hosts[name] }

// NewLive returns one with its first values.
func NewLive(first Changeable) *Live {
	l := new(Live)
	l.Set(first)
	return l
}

// Set lets new values hold from now on.
func (l *Live) Set(c Changeable) {
	o := &liveOptions{c, map[string]bool{}}
	for _, name := range c.AllowHosts {
		o.hosts[strings.ToLower(name)] = true
	}
	l.now.Store(o)
}
