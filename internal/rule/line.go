package rule

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// Pos is a place in line (core.md section 1): lower stands first.
type Pos struct {
	Seq      int64
	Priority uint16
	Band     uint8
	ID       job.ID
}

// Before orders places by (priority, band, seq, id).
func (p Pos) Before(q Pos) bool {
	switch {
	case p.Priority != q.Priority:
		return p.Priority < q.Priority
	case p.Band != q.Band:
		return p.Band < q.Band
	case p.Seq != q.Seq:
		return p.Seq < q.Seq
	}
	return p.ID.Before(q.ID)
}

// Class tells the lines of one queue apart. Jobs with equal requirements form
// a class, so a take never scans heads it may not run; fresh and retried jobs
// are two lines, so that a budget can stop the one without the other; jobs
// that must be delivered alone are a line too, and so are those without a
// group, which in a fair queue count as one group.
type Class struct {
	Requires string // canonical form of the requirements
	Retried  bool
	Isolated bool
	Member   bool   // stands behind the gate of its group
	Copy     bool   // of one that runs: not for whoever has the same host
	For      string // the only holders that may take it, see Engines; "" = anyone
}

// Hand names a duty of the clock.
type Hand uint8

// The hands over jobs; rows have a timer of their own (job.Row.Due).
const (
	HandDue     Hand = iota
	HandTimeout      // run and start timeouts
	HandLapse        // soft ends of unary leases
	HandExpire
	HandPurge
	Hands // how many there are
)

func (h Hand) String() string { return [...]string{"due", "timeout", "lapse", "expire", "purge"}[h] }

// Entries is where a job is found: a pure function of the job, computed here
// and nowhere else. A store derives all its indexes from it.
type Entries struct {
	Wants  bool // wants a holder: stands in line, or offers itself to its gate
	Pos    Pos  // its place in line
	Class  Class
	Member bool // belongs to the gate of its group
	Inner  Pos  // its place inside the group
	Runs   bool // is out with a holder, in the turn of its group
	Dead   DeadEntry
	Key    Key    // stands under this key, and no other job does
	Park   string // out of line under this label
	Timer  [Hands]job.Millis

	Finished int64 // its number among the finished of its queue; 0 = has none
}

// DeadEntry is a place in the dead set: inside the group of a fingerprint by
// the time of death, then by id.
type DeadEntry struct {
	Is    bool
	Print job.Fingerprint
	At    job.Millis
}

// EntriesOf computes the index entries of a job.
func EntriesOf(j *job.Job) Entries {
	e := Entries{Pos: Pos{Seq: j.Seq, Priority: j.Priority, Band: j.Band, ID: j.ID}}
	e.member(j)
	switch j.State {
	case job.Ready:
		e.Wants = true
	case job.Leased:
		e.Wants = len(j.Leases) < int(j.CopiesWanted)
		e.runs(j)
	case job.Scheduled:
		e.Timer[HandDue] = max(j.ReadyAt, 1)
	case job.Dead:
		e.Timer[HandPurge] = j.PurgeAt
		if j.Reason != job.ReasonCancelled { // nothing killed it
			e.Dead = DeadEntry{Is: true, Print: j.Print, At: j.DiedAt}
		}
	case job.Done:
		e.Timer[HandPurge] = j.PurgeAt
	case job.None, job.States:
	}
	if j.State == job.Ready || j.State == job.Scheduled {
		e.Timer[HandExpire] = j.ExpiresAt
	}
	if j.State.Terminal() {
		e.Finished = j.Finished
	}
	e.Key = KeyOf(j)
	if e.Park = j.Park; e.Park != "" {
		e.Wants = false
	}
	if e.Wants {
		e.class(j)
	}
	return e
}

// member is where a job stands in its group.
func (e *Entries) member(j *job.Job) {
	if j.Group == "" || !j.State.Open() && !j.BlocksGroup {
		return
	}
	e.Member, e.Inner = true, e.Pos
	if j.Order != job.OrderNone {
		e.Inner = Pos{Seq: SortOf(j), ID: j.ID} // priority and place do not count inside
		e.Runs = len(j.Leases) > 0 && j.Leases[0].Turn != 0
	}
}

// runs are the ends of the leases of a job.
func (e *Entries) runs(j *job.Job) {
	for i := range j.Leases {
		l := &j.Leases[i]
		e.Timer[HandTimeout] = Sooner(Sooner(e.Timer[HandTimeout], l.RunEnd), l.StartBy)
		e.Timer[HandLapse] = Sooner(e.Timer[HandLapse], l.Until)
	}
}

// class is which holders a job fits that wants one.
func (e *Entries) class(j *job.Job) {
	e.Class = Class{
		Requires: Canonical(j.Requires), Isolated: j.Isolated, Member: e.Member, Copy: j.State == job.Leased,
		Retried: retried(j),
	}
	if j.Extras != nil && !e.Member {
		e.Class.For = reservedFor(j)
	}
}

// retried reports whether a job counts against the retry budget of its queue: strict groups
// are exempt.
func retried(j *job.Job) bool { return j.Attempts > 0 && j.Order != job.OrderStrict }

// SortOf is the sort position of a member inside a group with an order: its rank,
// or the order of arrival. Of equal ones who came first stands first.
func SortOf(j *job.Job) int64 {
	if j.Ranked {
		return j.Rank
	}
	return j.Seq
}

// Sooner is the sooner of two times; 0 = never.
func Sooner(a, b job.Millis) job.Millis {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Seeker is a holder that asks for work.
type Seeker struct {
	Holder      string
	Held        int  // leases it has
	HasIsolated bool // one of them is a job delivered alone
	Properties  map[string]string
	Turns       bool   // asks for turns of groups, and gets nothing else
	Members     int    // of each turn, at most; a store may read them together
	Before      int64  // only what stands before this position of a line; 0 = all
	Engine      bool   // asks for tasks of sessions, and only engines do
	Host        string // of an engine: it gets no copy of what runs there
	// Room is how much may be taken from a queue now; nil = from all as much
	// as there is. It is asked at most once a queue, and the jobs foremost in
	// line get the room there is.
	Room func(queue string) Room
}

// Fits reports whether the holder may run a job of the class (the hook Fit of
// core.md section 3).
func Fits(c Class, requires []job.Requirement, s Seeker) bool {
	if s.HasIsolated || c.Isolated && s.Held > 0 || c.keptFrom(s.Holder) {
		return false
	}
	for _, r := range requires {
		if !holds(r, s.Properties[r.Property]) {
			return false
		}
	}
	return true
}

// Serves reports whether the lines of a queue are for the seeker.
func Serves(q *job.Queue, s Seeker) bool {
	return Open(q) && q.Turns == s.Turns && (q.Grid != nil) == s.Engine
}

// ForAll reports whether the lines of a queue are among those that who names no queue
// takes from.
func ForAll(q *job.Queue) bool { return !q.Turns && q.Grid == nil && !q.Outlet }

// Open reports whether a queue's lines may be taken from at all.
func Open(q *job.Queue) bool { return !q.Paused && q.HoldUntil == 0 }

// Pick reports whether the line whose head stands at a goes before the one at
// b (the hook Pick of core.md section 3): strict order over all lines.
func Pick(a, b Pos) bool { return a.Before(b) }

func holds(r job.Requirement, has string) bool {
	if op, ok := strings.CutSuffix(r.Op, missingToo); ok {
		if has == "" {
			return true
		}
		r.Op = op
	}
	a, errA := strconv.ParseFloat(has, 64)
	b, errB := strconv.ParseFloat(r.Value, 64)
	if errA == nil && errB == nil && a == a && b == b { // NaN is a text, not a number
		switch r.Op {
		case "=":
			return a == b
		case "!=":
			return a != b
		case "<":
			return a < b
		case "<=":
			return a <= b
		case ">":
			return a > b
		case ">=":
			return a >= b
		}
	}
	switch r.Op {
	case "=":
		return has == r.Value
	case "!=":
		return has != r.Value
	}
	return false // a comparison needs two numbers
}

// missingToo behind an operator is the null rule of a requirement: a holder
// without the property meets it. Without it such a holder meets only !=.
const missingToo = "?"

// SortRequirements puts conditions in order, each once: in another order they are
// still the same class of jobs. It may change the list.
func SortRequirements(list []job.Requirement) []job.Requirement {
	slices.SortFunc(list, func(a, b job.Requirement) int {
		return cmp.Or(cmp.Compare(a.Property, b.Property), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Value, b.Value))
	})
	return slices.Compact(list)
}

// ParseRequirement reads "cpuMHz > 350", "region = eu" or "cpuMHz >? 350".
func ParseRequirement(s string) (job.Requirement, error) {
	const signs = "!<=>"
	if at := strings.IndexAny(s, signs); at > 0 {
		end := at + 1
		if s[at] != '=' && strings.HasPrefix(s[end:], "=") {
			end++
		}
		if s[at:end] != "!" && strings.HasPrefix(s[end:], missingToo) {
			end++
		}
		r := job.Requirement{Property: strings.TrimSpace(s[:at]), Op: s[at:end], Value: strings.TrimSpace(s[end:])}
		if r.Property != "" && r.Value != "" && r.Op != "!" && !strings.ContainsAny(r.Value[:1], signs) {
			return r, nil
		}
	}
	return job.Requirement{}, job.Errorf(job.Invalid,
		"requirement %q is not of the form PROPERTY OP VALUE with one of = != < <= > >=", s)
}

// Canonical writes requirements so that equal ones are equal strings.
func Canonical(list []job.Requirement) string {
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	for _, r := range list {
		b.WriteString(r.Property + "\x00" + r.Op + "\x00" + r.Value + "\x00")
	}
	return b.String()
}

// Admit decides whether a queue with so many open jobs and bytes takes one
// more of the given size (core.md section 10). evict asks to push out the
// oldest first.
func Admit(q *job.Queue, jobs, bytes, size int64) (evict bool, err error) {
	full := q.MaxJobs > 0 && jobs+1 > q.MaxJobs || q.MaxBytes > 0 && bytes+size > q.MaxBytes
	switch {
	case !full:
		return false, nil
	case q.OnFull == job.FullDropOldest && mayDrop(q) && jobs > 0 && (q.MaxBytes == 0 || size <= q.MaxBytes):
		return true, nil
	}
	return false, Full(q, jobs, bytes)
}

// Full is the refusal of a queue that has no room.
func Full(q *job.Queue, jobs, bytes int64) *job.Error {
	return &job.Error{
		Kind: job.OverLimit, Field: "queue",
		Text: "queue " + strconv.Quote(q.Name) + " is full (" + strconv.FormatInt(jobs, 10) + " jobs, " +
			strconv.FormatInt(bytes, 10) + " bytes); try again later or raise max_jobs or max_bytes",
	}
}
