package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Check compares every answer of a store with what its own list of jobs and
// its rows make of it, and the jobs with the invariants. Nothing may write
// meanwhile. A store with a Check of its own is asked as well.
func Check(ctx context.Context, s store.Store) error {
	var c checker
	err := s.View(ctx, func(r store.Reader) error {
		m, err := newModel(r)
		if err != nil {
			return err
		}
		c = checker{Reader: r, m: m}
		c.jobs()
		c.line()
		c.hands()
		c.holders()
		c.members()
		c.turns()
		c.keys()
		c.counts()
		c.groups()
		c.failures()
		c.rows()
		return nil
	})
	if err != nil {
		return err
	}
	c.payloads(s)
	if own, ok := s.(interface{ Check() error }); ok {
		c.note(own.Check())
	}
	return errors.Join(c.found...)
}

// checker collects what is wrong.
type checker struct {
	store.Reader
	m     *model
	found []error
}

// foundMax keeps a broken store from filling the screen.
const foundMax = 20

func (c *checker) note(err error) {
	if err != nil && len(c.found) < foundMax {
		c.found = append(c.found, err)
	}
}

func (c *checker) wrong(format string, args ...any) { c.note(fmt.Errorf(format, args...)) }

// same compares an answer with what follows from the list of jobs.
func same[T any](c *checker, got T, err error, want T, question string, args ...any) {
	if err != nil {
		c.wrong("%s: %w", fmt.Sprintf(question, args...), err)
	} else if !reflect.DeepEqual(plain(got), plain(want)) {
		c.wrong("%s: got %s, want %s (%s)", fmt.Sprintf(question, args...), show(got), show(want), apart(plain(got), plain(want)))
	}
}

// jobs holds every job against the invariants.
func (c *checker) jobs() {
	tokens := map[job.Token]job.ID{}
	for i, j := range c.m.jobs {
		if i > 0 && !c.m.jobs[i-1].ID.Before(j.ID) {
			c.wrong("List: job %s does not come after %s", j.ID, c.m.jobs[i-1].ID)
		}
		again, err := c.Get(j.ID)
		same(c, again, err, j, "Get and List do not agree about job %s", j.ID)
		c.alive(j)
		for _, l := range j.Leases {
			if other, twice := tokens[l.Token]; twice || l.Token.IsZero() {
				c.wrong("I2: jobs %s and %s have the same token", other, j.ID)
			}
			tokens[l.Token] = j.ID
		}
	}
}

// alive checks I1 and I3 on one job.
func (c *checker) alive(j *job.Job) {
	e := c.m.entries[j.ID]
	switch {
	case j.State == job.None || j.State >= job.States:
		c.wrong("I1: job %s is in state %d", j.ID, j.State)
		return
	case (j.State == job.Leased) != (len(j.Leases) > 0):
		c.wrong("I3: job %s is %s and has %d leases", j.ID, j.State, len(j.Leases))
	case len(j.Leases) > int(j.CopiesWanted):
		c.wrong("I3: job %s has %d leases, %d are wanted", j.ID, len(j.Leases), j.CopiesWanted)
	case (j.State == job.Dead) != (j.Reason != job.Alive):
		c.wrong("I1: job %s is %s for the reason %q", j.ID, j.State, j.Reason)
	case j.BlocksGroup && j.State != job.Dead:
		c.wrong("I1: job %s is %s and blocks its group", j.ID, j.State)
	}
	timed := slices.ContainsFunc(e.Timer[:], func(m job.Millis) bool { return m > 0 })
	if j.State.Open() && !e.Wants && !timed && len(j.Leases) == 0 && !e.Member && j.Park == "" {
		c.wrong("I1: nothing leads to job %s, which is %s", j.ID, j.State)
	}
}

// line asks Ready for everything, for one job, and for something between.
func (c *checker) line() {
	sets := [][]string{nil}
	queues := c.m.names(func(j *job.Job) string { return j.Queue })
	for i := range queues {
		sets = append(sets, queues[i:i+1], queues[:i])
	}
	for _, s := range c.m.seekers() {
		for _, set := range sets {
			want := c.m.ready(set, s)
			for _, n := range []int{len(want) + 1, 1, (len(want) + 1) / 2} {
				list, err := c.Ready(set, s, n)
				same(c, idsOf(list), err, want[:min(n, len(want))], "Ready(%q, %+v, %d)", set, s, n)
				for _, j := range list {
					again, err := c.Get(j.ID)
					same(c, j, err, again, "Ready and Get do not agree about job %s", j.ID)
				}
			}
		}
	}
}

func (c *checker) hands() {
	for h := range rule.Hands {
		all := c.m.due(h, job.MaxMillis)
		var next job.Millis
		if len(all) > 0 {
			next = c.m.entries[all[0]].Timer[h]
		}
		same(c, c.Next(h), nil, next, "Next(%s)", h)
		for _, at := range []int{0, len(all) / 2, len(all) - 1} {
			if at < 0 || at >= len(all) {
				continue
			}
			until := c.m.entries[all[at]].Timer[h]
			for _, t := range []job.Millis{until, until - 1} {
				want := c.m.due(h, t)
				got, err := c.IDs(store.Due(h, t), len(all)+1)
				same(c, got, err, want, "Due(%s, %d, all)", h, t)
				got, err = c.IDs(store.Due(h, t), 1)
				same(c, got, err, want[:min(1, len(want))], "Due(%s, %d, 1)", h, t)
			}
		}
	}
}

func (c *checker) holders() {
	held := c.m.held()
	names, err := store.Holders(c)
	same(c, names, err, sortedKeys(held), "Holders()")
	for name, ids := range held {
		got, err := c.IDs(store.Held(name), store.All)
		same(c, got, err, ids, "Held(%q)", name)
	}
}

func (c *checker) members() {
	for _, members := range c.m.groups {
		queue, group := members[0].Queue, members[0].Group
		depth := store.GroupDepth{Head: members[0].ID}
		for _, j := range members {
			depth.Leases += len(j.Leases)
			if j.BlocksGroup {
				depth.Blockers++
			}
		}
		same(c, c.GroupDepth(queue, group), nil, depth, "GroupDepth(%q, %q)", queue, group)
		for _, n := range []int{len(members) + 1, 1} {
			got, err := c.IDs(store.Members(queue, group), n)
			same(c, got, err, idsOf(members[:min(n, len(members))]), "Members(%q, %q, %d)", queue, group, n)
		}
	}
}

func (c *checker) counts() {
	count := func(f store.Filter, match func(*job.Job) bool) {
		n, err := c.Count(f)
		same(c, n, err, c.m.count(match), "Count(%+v)", f)
	}
	queues := c.m.names(func(j *job.Job) string { return j.Queue })
	types := c.m.names(func(j *job.Job) string { return j.Type })
	names, err := c.Names()
	same(c, names, err, queues, "Names()")
	count(store.Filter{}, func(*job.Job) bool { return true })
	for _, q := range append(queues, "a queue without jobs") {
		same(c, c.Depth(q), nil, c.m.depth(q), "Depth(%q)", q)
		count(store.Filter{Queues: []string{q}}, func(j *job.Job) bool { return j.Queue == q })
		for st := job.Scheduled; st < job.States; st++ {
			count(store.Filter{Queues: []string{q}, States: []job.State{st}},
				func(j *job.Job) bool { return j.Queue == q && j.State == st })
		}
	}
	for _, typ := range types {
		count(store.Filter{Types: []string{typ}}, func(j *job.Job) bool { return j.Type == typ })
	}
	var highest job.ID
	if n := len(c.m.jobs); n > 0 {
		highest = c.m.jobs[n-1].ID
	}
	got, err := store.MaxID(c)
	same(c, got, err, highest, "MaxID()")
}

func (c *checker) failures() {
	for _, j := range c.m.jobs {
		up, err := c.Failures(j.ID, 0, false, pageMax)
		down, errDown := c.Failures(j.ID, 0, true, pageMax)
		slices.Reverse(down)
		same(c, down, errors.Join(err, errDown), up, "Failures(%s), up and down", j.ID)
		for i, f := range up {
			if f.Number == 0 || f.Number > j.Failures || i > 0 && f.Number <= up[i-1].Number {
				c.wrong("job %s had %d failures; record %d is numbered %d", j.ID, j.Failures, i, f.Number)
			}
		}
	}
}

// payloads checks I8 as far as it can be seen: what is referred to is there.
func (c *checker) payloads(s store.Store) {
	for _, j := range c.m.jobs {
		if r := j.Result(); r != nil && r.Bytes != nil {
			if len(r.Bytes) != int(r.Size) || !r.Ref.IsZero() {
				c.wrong("job %s has a result of %d bytes in it, says %d, and names payload %s", j.ID, len(r.Bytes), r.Size, r.Ref)
			}
		} else if r != nil {
			if body, err := store.Payload(s, r.Ref); err != nil || body == nil || len(body) != int(r.Size) {
				c.wrong("I8: the result of job %s is %d bytes (nil: %t), the job says %d (%v)", j.ID, len(body), body == nil, r.Size, err)
			}
		}
		if j.Payload.IsZero() {
			continue
		}
		body, err := store.Payload(s, j.Payload)
		if err != nil || body == nil || len(body) != int(j.PayloadSize) {
			c.wrong("I8: the payload of job %s is %d bytes (nil: %t), the job says %d (%v)", j.ID, len(body), body == nil, j.PayloadSize, err)
		}
	}
}

// rows checks the rows of every table against the list of them.
func (c *checker) rows() {
	for t := range job.Tables {
		var all []job.Row
		for after := ""; ; after = all[len(all)-1].Key() {
			page, err := c.Rows(t, after, pageMax)
			if err != nil {
				c.wrong("Rows(%d): %w", t, err)
			}
			if len(page) > 0 && page[len(page)-1].Key() <= after {
				c.wrong("Rows(%d) above %q goes to %q", t, after, page[len(page)-1].Key())
				break
			}
			if len(page) == 0 {
				break
			}
			all = append(all, page...)
		}
		timed := slices.DeleteFunc(slices.Clone(all), func(r job.Row) bool { return r.Due() == 0 })
		slices.SortStableFunc(timed, func(a, b job.Row) int { return int(a.Due() - b.Due()) })
		var next job.Millis
		if len(timed) > 0 {
			next = timed[0].Due()
		}
		same(c, c.NextRow(t), nil, next, "NextRow(%d)", t)
		due, err := c.DueRows(t, job.MaxMillis, len(all)+1)
		same(c, due, err, timed, "DueRows(%d, all)", t)
		for i, row := range all {
			again, err := c.Row(t, row.Key())
			same(c, again, err, row, "Row and Rows do not agree about %q of table %d", row.Key(), t)
			if row.Table() != t || i > 0 && row.Key() <= all[i-1].Key() {
				c.wrong("Rows(%d): %q of table %d is out of order", t, row.Key(), row.Table())
			}
		}
	}
}
