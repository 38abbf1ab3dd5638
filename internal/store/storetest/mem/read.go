package mem

import (
	"cmp"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// reader answers from a state by looking at all of it.
type reader struct {
	state *state
	now   job.Millis
}

func (r reader) Now() job.Millis { return r.now }

func (r reader) Get(id job.ID) (*job.Job, error) {
	if j := r.state.jobs[id]; j != nil {
		return j.Clone(), nil
	}
	return nil, nil
}

// those returns the jobs that are wanted, by id.
func (r reader) those(wanted func(*job.Job) bool) []*job.Job {
	var list []*job.Job
	for _, j := range r.state.jobs {
		if wanted(j) {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *job.Job) int { return a.ID.Compare(b.ID) })
	return list
}

func (r reader) IDs(l store.List, n int) ([]job.ID, error) {
	list := r.those(func(j *job.Job) bool {
		e := rule.EntriesOf(j)
		switch l.Kind {
		case store.OfDue:
			return e.Timer[l.Hand] > 0 && e.Timer[l.Hand] <= l.Until
		case store.OfHeld:
			return j.HeldBy(l.Name)
		case store.OfParked:
			return e.Park == l.Name && l.Name != ""
		case store.OfFinished:
			return j.Queue == l.Queue && e.Finished > l.After
		default:
			return e.Member && j.Queue == l.Queue && j.Group == l.Name && (e.Runs || l.Kind == store.OfMembers)
		}
	})
	slices.SortStableFunc(list, func(a, b *job.Job) int {
		x, y := rule.EntriesOf(a), rule.EntriesOf(b)
		switch l.Kind {
		case store.OfDue:
			return cmp.Compare(x.Timer[l.Hand], y.Timer[l.Hand])
		case store.OfHeld:
			return 0
		case store.OfParked:
			return byPlace(x.Pos, y.Pos)
		case store.OfFinished:
			return cmp.Compare(x.Finished, y.Finished)
		default:
			return byPlace(x.Inner, y.Inner)
		}
	})
	return idsOf(first(list, n)), nil
}

func (r reader) Next(h rule.Hand) job.Millis {
	var next job.Millis
	for _, j := range r.state.jobs {
		if at := rule.EntriesOf(j).Timer[h]; at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	return next
}

func (r reader) GroupDepth(queue, group string) (d store.GroupDepth) {
	for i, j := range r.inGroup(queue, group, func(rule.Entries) bool { return true }) {
		if i == 0 {
			d.Head = j.ID
		}
		d.Leases += len(j.Leases)
		if j.BlocksGroup {
			d.Blockers++
		}
	}
	return d
}

func (r reader) Wanting(queue, group string, after *rule.Pos, n int) ([]*job.Job, error) {
	return copies(first(r.inGroup(queue, group, func(e rule.Entries) bool {
		return e.Wants && (after == nil || after.Before(e.Inner))
	}), n)), nil
}

// inGroup returns the members of a group that are wanted, in its order.
func (r reader) inGroup(queue, group string, wanted func(rule.Entries) bool) []*job.Job {
	list := r.those(func(j *job.Job) bool {
		e := rule.EntriesOf(j)
		return e.Member && j.Queue == queue && j.Group == group && wanted(e)
	})
	slices.SortFunc(list, func(a, b *job.Job) int {
		return byPlace(rule.EntriesOf(a).Inner, rule.EntriesOf(b).Inner)
	})
	return list
}

func (r reader) List(f store.Filter, n int) ([]*job.Job, error) {
	list := r.those(func(j *job.Job) bool {
		switch {
		case !matches(f, j):
			return false
		case f.From.IsZero():
			return true
		case f.Desc:
			return j.ID.Before(f.From)
		}
		return f.From.Before(j.ID)
	})
	if f.Desc {
		slices.Reverse(list)
	}
	return copies(first(list, n)), nil
}

func (r reader) Count(f store.Filter) (int64, error) {
	return int64(len(r.those(func(j *job.Job) bool { return matches(f, j) }))), nil
}

func matches(f store.Filter, j *job.Job) bool {
	return !f.Hides(j) && among(f.States, j.State) && among(f.Statuses, rule.StatusOf(j)) && among(f.Queues, j.Queue) && among(f.Types, j.Type) && among(f.IDs, j.ID) &&
		(len(f.Prints) == 0 || rule.EntriesOf(j).Dead.Is && slices.Contains(f.Prints, j.Print))
}

// among reports whether a filter lets a value pass: no values let all pass.
func among[T comparable](values []T, v T) bool { return len(values) == 0 || slices.Contains(values, v) }

func (r reader) Depth(queue string) store.Depth {
	var d store.Depth
	for _, j := range r.state.jobs {
		if j.Queue != queue {
			continue
		}
		d.States[j.State]++
		d.Leases += int64(len(j.Leases))
		d.Status[rule.StatusOf(j)]++
		if rule.EntriesOf(j).Wants {
			d.Wanting++
		}
		if j.State.Open() {
			d.Bytes += int64(j.PayloadSize)
		}
		if j.State.Open() && j.Group != "" {
			d.Grouped++
		}
	}
	for _, g := range r.standing(queue) {
		d.Groups[g.Is]++
	}
	return d
}

func (r reader) Groups(edges []job.Millis) ([]store.Group, error) {
	groups := map[job.Fingerprint]*store.Group{}
	for _, j := range r.those(func(j *job.Job) bool { return rule.EntriesOf(j).Dead.Is }) {
		at := rule.EntriesOf(j).Dead
		g := groups[at.Print]
		if g == nil {
			g = &store.Group{Print: at.Print, First: at.At, Queues: map[string]int64{}, Trend: make([]int64, len(edges))}
			groups[at.Print] = g
		}
		g.Queues[j.Queue]++
		g.First = min(g.First, at.At)
		if at.At >= g.Last {
			g.Last, g.Sample = at.At, j.ID
		}
		for i := range slices.Backward(edges) {
			if at.At >= edges[i] {
				g.Trend[i]++
				break
			}
		}
	}
	var out []store.Group
	for _, print := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, *groups[print])
	}
	return out, nil
}

func (r reader) Owner(key rule.Key) (id job.ID, ok bool) {
	if key.Kind == rule.NoKey {
		return id, false
	}
	for _, j := range r.state.jobs {
		if rule.EntriesOf(j).Key == key {
			return j.ID, true
		}
	}
	return id, false
}

func (r reader) Names() ([]string, error) {
	names := map[string]bool{}
	for _, j := range r.state.jobs {
		names[j.Queue] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func (r reader) Peek(ref job.ID) []byte {
	if body, kept := r.state.payloads[ref]; kept {
		return copyOf(body)
	}
	return nil
}

func (r reader) Failures(id job.ID, from uint32, desc bool, n int) ([]job.Failure, error) {
	numbers := r.state.numbersOf(id)
	if desc {
		slices.Reverse(numbers)
	}
	var list []job.Failure
	for _, number := range numbers {
		if from == 0 || desc && number < from || !desc && number > from {
			list = append(list, r.state.failures[failureKey{id, number}])
		}
	}
	return first(list, n), nil
}

func (r reader) Row(t job.Table, key string) (job.Row, error) {
	return r.state.rows[rowKey{t, key}], nil
}

func (r reader) Rows(t job.Table, after string, n int) ([]job.Row, error) {
	return first(r.rows(t, func(row job.Row) bool { return row.Key() > after }), n), nil
}

func (r reader) DueRows(t job.Table, until job.Millis, n int) ([]job.Row, error) {
	list := r.rows(t, func(row job.Row) bool { return row.Due() > 0 && row.Due() <= until })
	slices.SortStableFunc(list, func(a, b job.Row) int { return cmp.Compare(a.Due(), b.Due()) })
	return first(list, n), nil
}

func (r reader) NextRow(t job.Table) job.Millis {
	var next job.Millis
	for _, row := range r.rows(t, func(row job.Row) bool { return row.Due() > 0 }) {
		if next == 0 || row.Due() < next {
			next = row.Due()
		}
	}
	return next
}

// rows returns the rows of a table that are wanted, by key.
func (r reader) rows(t job.Table, wanted func(job.Row) bool) []job.Row {
	var list []job.Row
	for k, row := range r.state.rows {
		if k.table == t && wanted(row) {
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b job.Row) int { return cmp.Compare(a.Key(), b.Key()) })
	return list
}

func (r reader) Standing(queue string, is []rule.Condition, after string, n int) ([]store.Standing, error) {
	list := slices.DeleteFunc(r.standing(queue), func(g store.Standing) bool { return g.Group <= after || !among(is, g.Is) })
	return first(list, n), nil
}

// standing returns the groups of a queue that are given out in turns, by name.
func (r reader) standing(queue string) (list []store.Standing) {
	if !r.queue(queue).Turns {
		return nil
	}
	gates := r.gates()
	for _, key := range slices.Sorted(maps.Keys(gates)) {
		g := gates[key]
		if g.Gate.Queue != queue {
			continue
		}
		members := r.inGroup(queue, g.Gate.Group, func(rule.Entries) bool { return true })
		list = append(list, store.Standing{
			Group: g.Gate.Group, Is: rule.ConditionOf(g.Group, members[0].State), Members: int64(len(members)), Head: members[0].ID,
		})
	}
	return list
}

func first[T any](list []T, n int) []T { return list[:min(max(n, 0), len(list))] }

func idsOf(list []*job.Job) []job.ID {
	ids := make([]job.ID, 0, len(list))
	for _, j := range list {
		ids = append(ids, j.ID)
	}
	return ids
}

func copies(list []*job.Job) []*job.Job {
	out := make([]*job.Job, 0, len(list))
	for _, j := range list {
		out = append(out, j.Clone())
	}
	return out
}

// Unreadable implements store.Reader: memory is not damaged.
func (reader) Unreadable() []store.Unreadable { return nil }
