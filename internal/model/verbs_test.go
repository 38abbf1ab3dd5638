package model

import (
	"reflect"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// accepted stands where a verb may be refused with a kind; no refusal is of
// the kind Internal.
const accepted = job.Internal

// keyTaken reports whether a call uses an idempotency key for other content.
func (m *model) keyTaken(list []engine.NewJob) bool {
	seen := map[string]engine.NewJob{}
	for key, r := range m.receipts {
		seen[key] = r.content
	}
	for _, n := range list {
		if old, known := seen[keyOf(n)]; n.Key != "" && known && !reflect.DeepEqual(old, n) {
			return true
		}
		seen[keyOf(n)] = n
	}
	return false
}

// keyOf is an idempotency key, which belongs to its queue.
func keyOf(n engine.NewJob) string { return n.Job.Queue + "/" + n.Key }

// put takes in one job of a call that is not refused, under the id that the
// engine drew.
func (m *model) put(n engine.NewJob, id job.ID) (want engine.Added) {
	if r, known := m.receipts[keyOf(n)]; known && n.Key != "" {
		m.stats.Duplicates++
		return engine.Added{Job: m.jobs[r.id], ID: r.id, Duplicate: true}
	}
	if met := m.meets(n); met != nil {
		return *met
	}
	j := n.Job
	j.ID, j.Payload, j.PayloadSize = id, id, uint32(len(n.Payload))
	j.Created, j.Seq, j.Band = m.now, m.draw(), job.BandNormal
	m.setOrder(&j)
	if n.Place == job.PlaceFront {
		m.place(&j, n.Place)
	}
	j.Copies = max(j.Copies, 1)
	j.CopiesWanted = j.Copies
	j.State = job.Ready
	if j.ReadyAt > m.now {
		j.State = job.Scheduled
	}
	if j.ReadyAt == 0 {
		j.ReadyAt = m.now
	}
	m.jobs[id] = &j
	m.made[id] = n.Payload
	m.owns(&j)
	if n.Key != "" {
		m.receipts[keyOf(n)] = receipt{n, id, m.now + idempotency}
	}
	m.stats.Put++
	return engine.Added{Job: &j, ID: id}
}

func (m *model) setOrder(j *job.Job) {
	if j.Order = job.OrderNone; j.Group != "" {
		j.Order = m.queues[j.Queue].Order
	}
}

func (m *model) place(j *job.Job, p job.Place) {
	switch {
	case j.Order == job.OrderStrict: // members leave in sequence
	case p == job.PlaceBack:
		j.Band, j.Seq = job.BandNormal, m.draw()
	case p == job.PlaceFront:
		j.Band = job.BandFront
		if m.queues[j.Queue].FrontOrder == job.FrontLIFO {
			j.Seq = -m.draw()
		}
	}
}

// take gives a job to a holder under the token that the engine drew; life is
// that of a unary lease.
// joins is whether it runs in the turn of its group that began before it.
func (m *model) take(j *job.Job, token job.Token, holder string, kind job.HolderKind, life job.Millis, joins bool) {
	l := job.Lease{Token: token, Holder: holder, Kind: kind, Since: m.now, Exclusive: j.Isolated}
	if life > 0 {
		l.Until, l.Length = m.now+life, life
	}
	if t := m.runTimeout(j); t > 0 {
		l.RunEnd = m.now + t
	}
	if j.StartTimeout > 0 {
		l.StartBy = m.now + j.StartTimeout
	}
	l.Turn = m.turn(j, joins)
	if j.State == job.Ready {
		m.taken(j)
	}
	if x := j.Extras; x != nil && x.Progress != nil && len(j.Leases) == 0 {
		var kept *job.RunProgress
		if x.Progress.Checkpoint != nil {
			kept = &job.RunProgress{Fraction: job.FractionUnset, Checkpoint: x.Progress.Checkpoint, At: x.Progress.At}
		}
		setProgress(j, kept)
	}
	j.State, j.DequeuedAt = job.Leased, m.now
	j.Deliveries++
	j.FailedBesideCopy = j.FailedBesideCopy && len(j.Leases) > 0
	j.Leases = append(j.Leases, l)
	m.stats.Taken++
}

// setProgress changes the progress of a job, which may have a key as well.
func setProgress(j *job.Job, p *job.RunProgress) {
	x := job.Extras{Progress: p}
	if j.Extras != nil {
		x.Unique, x.Batch, x.Budgets = j.Extras.Unique, j.Extras.Batch, j.Extras.Budgets // a job that runs has no result
	}
	if j.Extras = &x; p == nil && x.Unique == nil && x.Batch == nil && x.Budgets == nil {
		j.Extras = nil
	}
}

func (m *model) runTimeout(j *job.Job) job.Millis {
	if j.RunTimeout > 0 {
		return j.RunTimeout
	}
	return m.queues[j.Queue].RunTimeout
}

// extend is a heartbeat, or the word that the run began.
func (m *model) extend(x engine.Extension) job.Kind {
	j := m.jobs[x.ID]
	switch {
	case j == nil:
		return job.NotFound
	case j.LeaseOf(x.Token) < 0:
		return job.Superseded
	}
	l := &j.Leases[j.LeaseOf(x.Token)]
	if x.Progress != nil {
		p := *x.Progress
		p.At = m.now
		if j.Extras != nil && j.Extras.Progress != nil && p.Checkpoint == nil {
			p.Checkpoint = j.Extras.Progress.Checkpoint
		}
		setProgress(j, &p)
	}
	if l.Until > 0 && x.For > 0 {
		l.Until, l.Length = m.now+x.For, x.For
	}
	if x.Started && l.Started == 0 {
		l.Started, l.StartBy, l.RunEnd = m.now, 0, 0
		if t := m.runTimeout(j); t > 0 {
			l.RunEnd = m.now + t
		}
	}
	return accepted
}

func (m *model) cancel(j *job.Job) job.Kind {
	if !j.State.Open() {
		return job.WrongState
	}
	m.endAll(j, job.ByCancel)
	m.bury(j, job.ReasonCancelled)
	return accepted
}

func (m *model) remove(j *job.Job) {
	m.unpark(j)
	delete(m.jobs, j.ID)
}

// unpark lets a group go on whose dead head is taken away or back.
func (m *model) unpark(j *job.Job) {
	if g := m.group(j.Queue, j.Group); g.Park == j.ID.String() {
		g.Park = ""
	}
}

func (m *model) offer(j *job.Job) job.Kind {
	if j.State != job.Leased {
		return job.WrongState
	}
	j.CopiesWanted++
	j.Reschedules++
	return accepted
}

func (m *model) revive(j *job.Job, outOfOrder bool) job.Kind {
	if j.State != job.Dead && j.State != job.Scheduled {
		return job.WrongState
	}
	if j.State == job.Dead {
		if j.Order == job.OrderStrict && !j.BlocksGroup && !outOfOrder {
			return job.WrongState
		}
		if j.Extras != nil && j.Extras.Unique != nil {
			if o := m.owner(j); o != nil && o != j {
				return job.Exists
			}
			j.HoldsKey = true
		}
		m.unpark(j)
		j.Attempts, j.Losses, j.Overrides, j.Suppressed, j.Isolated = 0, 0, 0, 0, false
		j.Reason, j.BlocksGroup, j.PurgeAt, j.CopiesWanted, j.RevivedAt = job.Alive, false, 0, j.Copies, m.now
		j.DiedAt, j.Replays = 0, j.Replays+1
		if j.ExpiresAt <= m.now {
			j.ExpiresAt = 0
		}
	}
	m.setOrder(j)
	j.State, j.ReadyAt = job.Ready, m.now
	return accepted
}

func (m *model) patch(j *job.Job, priority uint16, readyAt job.Millis) job.Kind {
	if !j.State.Open() {
		return job.WrongState
	}
	j.Priority, j.ReadyAt = priority, readyAt
	if j.State != job.Leased {
		m.wait(j)
		m.setBack(j)
	}
	return accepted
}

// leave ends a connection. A stream without a name loses its jobs, a named
// one has the re-attach window to come back.
func (m *model) leave(queue string, how job.Ending) {
	s := m.streams[queue]
	delete(m.streams, queue)
	if s.kind == job.Anonymous {
		m.vanish(s.holder, how)
	} else if len(m.holds(s.holder)) > 0 {
		m.away[s.holder] = m.now + reattach
	}
}
