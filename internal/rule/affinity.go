package rule

import (
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// Task affinity (reference section 6). Of the tasks of a session with one tag the
// next one stands in line, the others aside (AffinityPark). The next one is kept
// for the engines that ran a task of the tag, and after the wait, which begins
// when it becomes the next one, anyone may take it. When it is given out, or the
// wait is over, the one behind it is the next.
//
// A task that comes back, for whatever reason, is for anyone: what was to be
// saved by its place is not worth that it waits again.

// AffinityPark is the label of tasks that stand behind the next one of their tag.
func AffinityPark(session, tag string) string { return "affinity/" + session + "/" + tag }

// AffinityRan are the engines that ran a task of a tag when one more did.
func AffinityRan(list []string, engine string) []string {
	if len(list) > 0 && list[0] == engine {
		return list
	}
	out := append([]string{engine}, slices.DeleteFunc(slices.Clone(list), func(e string) bool { return e == engine })...)
	return out[:min(len(out), job.AffinityEngines)]
}

// AffinityFor is for whom the next task of a tag is kept: the engines that ran one
// and may be given tasks, sorted. If none is left, it is for anyone.
func AffinityFor(list []string, serves func(engine string) bool) []string {
	out := slices.DeleteFunc(slices.Clone(list), func(e string) bool { return !serves(e) })
	slices.Sort(out)
	return out
}

// reservedFor is who alone may take a job that stands in line; "" = anyone.
func reservedFor(j *job.Job) string {
	a := j.Affinity()
	if a == nil || len(a.For) == 0 || j.State != job.Ready || j.Deliveries > 0 {
		return ""
	}
	return strings.Join(a.For, forSep)
}

// forSep stands between the names of Class.For.
const forSep = "\x00"

// Engines are those of Class.For; nil = anyone.
func (c *Class) Engines() []string {
	if c.For == "" {
		return nil
	}
	return strings.Split(c.For, forSep)
}

// keptFrom reports whether jobs of the class are for other holders.
func (c *Class) keptFrom(holder string) bool {
	return c.For != "" && !slices.Contains(c.Engines(), holder)
}
