// Package store is the contract between the engine and whatever keeps the
// jobs: a transaction with few verbs. A store knows neither reasons nor
// doors: every index entry comes from rule.EntriesOf and rule.Stands, and
// Write moves a job from its old entries to its new ones in one atomic step.
//
// storetest holds the suite every store must pass.
package store

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Store keeps jobs, their payloads and failures, and rows.
type Store interface {
	// Update runs fn in a read-write transaction. fn may run twice, so it has
	// no effects outside its Tx. When Update returns, later transactions see
	// what fn wrote; Commit.Wait tells when a power cut cannot undo it. An
	// error of fn aborts the transaction. An error of kind Unavailable means
	// that nothing more can be written before Reopen.
	Update(ctx context.Context, fn func(Tx) error) (Commit, error)

	// View runs fn against a consistent state. It may see what is not durable yet.
	View(ctx context.Context, fn func(Reader) error) error

	// Payloads reads payloads without a transaction, for a holder that has
	// leases on their jobs. One that is gone is nil without an error. With an error
	// of kind Corrupt some cannot be read, and are nil as well; the others are there.
	Payloads(refs ...job.ID) ([][]byte, error)

	// Reopen drops everything in memory and loads it again from what is durable.
	Reopen(ctx context.Context) error

	// Free is the space left, in bytes, and the whole, where work is kept.
	Free() (free, total int64, err error)

	Close() error
}

// Payload reads one payload.
func Payload(s Store, ref job.ID) ([]byte, error) {
	list, err := s.Payloads(ref)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// MaxID is the highest id of a job in the store.
func MaxID(r Reader) (id job.ID, err error) {
	last, err := r.List(Filter{Desc: true}, 1)
	if len(last) > 0 {
		id = last[0].ID
	}
	return id, err
}

// Holders is all names that have a live lease.
func Holders(r Reader) ([]string, error) {
	running, err := Leased(r)
	names := map[string]bool{}
	for _, j := range running {
		for i := range j.Leases {
			names[j.Leases[i].Holder] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), err
}

// Leased is all jobs that have a live lease.
func Leased(r Reader) ([]*job.Job, error) {
	return r.List(Filter{States: []job.State{job.Leased}}, All)
}

// All is more than there is of anything.
const All = math.MaxInt32

// Commit is a transaction on its way to the disk.
type Commit interface {
	// Wait returns when the transaction is durable, or at once if it did not
	// ask to be. An error means that its outcome is unknown.
	Wait() error
}

// Tx reads and writes. It sees its own writes.
type Tx interface {
	Reader

	// Write moves a job from old to new: old nil = it did not exist, new nil
	// = it is gone, with its payload and its result (when no other job refers to it, I8) and
	// its failures. old must be what Get returned. A second job under one key
	// is refused: the one that is there yields first.
	Write(old, new *job.Job) error
	// PutPayload keeps bytes under ref until no job refers to it. A job that
	// refers to it must be written in the same transaction. The bytes themselves may be
	// kept in memory: nobody changes them any more.
	PutPayload(ref job.ID, body []byte) error
	// AppendPayload adds bytes to a payload that is there, and costs what they cost. All
	// jobs that refer to it are written in the same transaction, with its new size.
	AppendPayload(ref job.ID, more []byte) error
	// PutFailure keeps a failure record; DropFailure forgets one.
	PutFailure(id job.ID, f *job.Failure) error
	DropFailure(id job.ID, number uint32) error

	Set(row job.Row) error
	Unset(t job.Table, key string) error

	// Durable asks that Commit.Wait returns only when this transaction would
	// survive a power cut (in sync mode always).
	Durable()
}

// Reader is a consistent view.
type Reader interface {
	// Now is the time of the transaction: never behind an earlier one.
	Now() job.Millis

	// Get returns a job, nil if there is none.
	Get(id job.ID) (*job.Job, error)
	// Ready returns up to n jobs that want a holder and fit the seeker, in
	// line order over the named queues (none = all but sessions and those whose
	// groups are given out in turns). At most one member of a group is among
	// them: the one its gate stands for.
	Ready(queues []string, s rule.Seeker, n int) ([]*job.Job, error)
	// IDs returns up to n jobs of a list, in its order.
	IDs(l List, n int) ([]job.ID, error)
	// Next is the soonest time of a hand, 0 if it points nowhere.
	Next(h rule.Hand) job.Millis
	// GroupDepth returns what there is of a group, without a look at its members.
	GroupDepth(queue, group string) GroupDepth
	// Wanting returns the members of a group that want a holder, in its order, behind
	// a place in it (nil = all).
	Wanting(queue, group string, after *rule.Pos, n int) ([]*job.Job, error)
	// List returns up to n jobs that match, by id.
	List(f Filter, n int) ([]*job.Job, error)
	// Count counts the jobs that List would return in all; from and order are
	// not looked at.
	Count(f Filter) (int64, error)
	// Slice returns up to n jobs of a list from a position on, and how many are in
	// it; Place the position of a job, if it is in the list. Job.Ready is the list of
	// all that are ready as they stand in line, of a group the member that its gate
	// stands for, with those out of line; job.Scheduled is by the time they are due,
	// and any other state by id.
	Slice(list job.State, from int64, n int) (jobs []*job.Job, total int64, err error)
	Place(list job.State, id job.ID) (at int64, ok bool, err error)
	// Depth returns the jobs of a queue by state, its open payload bytes and
	// its open grouped jobs.
	Depth(queue string) Depth
	// Groups returns the groups of the dead set, by fingerprint, without a look
	// at every dead job. The trend of each counts the deaths from each edge up
	// to the next; edges ascend, and the last one is open.
	Groups(edges []job.Millis) ([]Group, error)
	// Owner returns the job that stands under a key (rule.KeyOf), if one does.
	Owner(key rule.Key) (id job.ID, ok bool)
	// Names returns the queues that have jobs, sorted.
	Names() ([]string, error)

	// Peek returns a payload if it is at hand without reading a disk, else nil.
	Peek(ref job.ID) []byte
	// Failures returns failure records of a job from number from on
	// (exclusive), ascending or descending, at most n. from 0 = from the end.
	Failures(id job.ID, from uint32, desc bool, n int) ([]job.Failure, error)

	// Row returns a row, nil if there is none. Rows returns up to n rows of a
	// table with keys above after; DueRows those due at or before until,
	// soonest first; NextRow the soonest due time of a table, 0 = none.
	Row(t job.Table, key string) (job.Row, error)
	Rows(t job.Table, after string, n int) ([]job.Row, error)
	DueRows(t job.Table, until job.Millis, n int) ([]job.Row, error)
	NextRow(t job.Table) job.Millis

	// Standing returns up to n groups of a queue that are given out in turns, by
	// name, those above after and in one of the conditions (none = any).
	Standing(queue string, is []rule.Condition, after string, n int) ([]Standing, error)

	// Unreadable are jobs that are kept and cannot be read, so that no other verb
	// finds them. Writing one anew, as if it did not exist, sets it aside.
	Unreadable() []Unreadable
}

// List is jobs that a store finds without a look at others, in an order of its own.
type List struct {
	Kind  ListKind
	Queue string
	Name  string // of a holder, a group or a label
	After int64
	Hand  rule.Hand
	Until job.Millis
}

// ListKind is what jobs of a List have in common.
type ListKind uint8

// The kinds of lists, each made by the function of the same name below.
const (
	OfDue ListKind = iota
	OfHeld
	OfMembers
	OfRunning
	OfParked
	OfFinished
)

// Due is the jobs whose hand points at or before until, soonest first.
func Due(h rule.Hand, until job.Millis) List { return List{Kind: OfDue, Hand: h, Until: until} }

// Held is the jobs on which the holder has a live lease, by id.
func Held(holder string) List { return List{Kind: OfHeld, Name: holder} }

// Members is the members of a group in its order.
func Members(queue, group string) List { return List{Kind: OfMembers, Queue: queue, Name: group} }

// Running is those that are out with a holder (rule.Entries.Runs).
func Running(queue, group string) List { return List{Kind: OfRunning, Queue: queue, Name: group} }

// Parked is the jobs that are out of line under a label, in line order, whatever
// their queues.
func Parked(label string) List { return List{Kind: OfParked, Name: label} }

// Finished is the finished jobs of a queue with a number (rule.Entries.Finished)
// above after, in the order of their numbers.
func Finished(queue string, after int64) List {
	return List{Kind: OfFinished, Queue: queue, After: after}
}

// Unreadable is a job whose row is damaged.
type Unreadable struct {
	ID      job.ID
	Payload job.ID // zero = nothing is known of it
	Size    uint32 // of the payload
	Why     string
}

// Filter selects jobs: OR inside a field, AND between fields, empty = any.
type Filter struct {
	States   []job.State
	Statuses []rule.Status
	Queues   []string
	Types    []string
	IDs      []job.ID
	Prints   []job.Fingerprint // groups of the dead: selects dead jobs only
	From     job.ID            // exclusive; zero = from the end the order starts at
	Desc     bool
	// Alive hides terminal jobs whose PurgeAt is at or before this time.
	Alive job.Millis
}

// Group is the dead jobs of one fingerprint (retry.md section 3). Those whose
// time to be purged has come count until the clock takes them away.
type Group struct {
	Print  job.Fingerprint
	Queues map[string]int64 // jobs by queue
	First  job.Millis       // soonest death
	Last   job.Millis       // latest one
	Sample job.ID           // who died last; of several the highest id
	Trend  []int64
}

// Count is the number of jobs in the group.
func (g *Group) Count() (n int64) {
	for _, m := range g.Queues {
		n += m
	}
	return n
}

// Standing is a group and what it does.
type Standing struct {
	Group   string
	Is      rule.Condition
	Members int64
	Head    job.ID
}

// GroupDepth is how much of a group there is.
type GroupDepth struct {
	Head     job.ID // its first member; zero = it has none
	Leases   int    // live ones of its members
	Blockers int    // dead members that hold it
}

// Depth is how much of a queue there is.
type Depth struct {
	States  [job.States]int64
	Bytes   int64 // payloads of open jobs
	Grouped int64 // open members of groups
	Leases  int64 // live ones: a job with copies has several
	Status  [rule.Statuses]int64
	Groups  [rule.Conditions]int64 // groups by condition, where they are given out in turns; else none
	Wanting int64                  // jobs that want a holder
}

// Open is the number of open jobs.
func (d Depth) Open() int64 {
	return d.States[job.Scheduled] + d.States[job.Ready] + d.States[job.Leased]
}

// Cancelled is the number of jobs that were cancelled: they are of the state dead,
// and no deaths.
func (d Depth) Cancelled() int64 { return d.Status[rule.StatusCancelled] }

// Members is the number of jobs whose group knows them: open ones, and dead ones that
// hold it.
func (d Depth) Members() int64 { return d.Grouped + d.Status[rule.StatusBlocking] }

// Hides reports whether the filter hides a terminal job whose time to be
// purged has come.
func (f *Filter) Hides(j *job.Job) bool {
	return f.Alive != 0 && j.PurgeAt != 0 && j.PurgeAt <= f.Alive
}
