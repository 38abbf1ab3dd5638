package sim_test

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// outcomes lists what may have been the reason of a write, and what each makes
// of the job.
func (s *scene) outcomes(ch *change) (list []*outcome) {
	if s.old == nil {
		return s.put(ch)
	}
	if s.new != nil && len(s.new.Leases) > len(s.old.Leases) {
		return []*outcome{s.taken()}
	}
	if by, is := s.cuts[s.old.ID]; is {
		return []*outcome{s.cutOff(by)}
	}
	for _, r := range s.asked {
		if r.id != s.old.ID || r.commit > 0 || r.lost {
			continue
		}
		list = append(list, s.requested(r)...)
	}
	list = append(list, s.vanished()...)
	list = append(append(list, s.timedOut(true)...), s.timedOut(false)...)
	list = append(list, s.evicted()...)
	list = append(list, s.clocked()...)
	list = append(list, s.letGo()...)
	list = append(list, s.budgeted()...)
	list = append(list, s.run()...)
	list = append(list, s.recalled()...)
	return append(append(list, s.carried()...), s.keyMoves(ch)...)
}

// requested is what a client's or an operator's request makes of the job.
func (s *scene) requested(r *request) []*outcome {
	o := &outcome{why: r.String(), req: r}
	j := s.old.Clone()
	switch r.kind {
	case askSettle:
		list, _, _ := s.settled(r)
		return list
	case askExtend:
		if o = s.extended(r); o == nil {
			return nil
		}
	case askDelete:
		if s.old.State.Open() {
			c := s.cancelled(o, j)
			c.req = nil // the purge follows
			if c.want == nil {
				c.req = r
			}
			return []*outcome{c}
		}
		o.verb = rule.Purge
		o.gate = s.unparked()
		o.note("deleted")
	case askOperate:
		if r.skips && s.old.State == job.Dead {
			return s.stepsAside(o, j, r)
		}
		if !rule.Allowed(r.command.Verb, s.old.State) {
			return nil
		}
		switch o.verb = r.command.Verb; o.verb {
		case rule.Cancel:
			return s.skipped(o, j, r)
		case rule.Offer:
			j.CopiesWanted++
			j.Reschedules++
			s.place(o, j, r.command.Place)
			o.want = j
		case rule.Revive:
			if !s.revived(o, j, r) || !s.edits(o, j, r) {
				return nil
			}
		default:
			if !s.edits(o, j, r) {
				return nil
			}
			s.patched(o, j, r)
		}
	default:
		return nil
	}
	if o.want != nil {
		o.state = o.want.State
	}
	return []*outcome{o}
}

func (s *scene) cancelled(o *outcome, j *job.Job) *outcome {
	o.verb = rule.Cancel
	endRest(j, job.ByCancel)
	return s.dead(o, j, job.ReasonCancelled, true)
}

// unparked is the gate without the park of this job as its dead head.
func (s *scene) unparked() *job.Gate {
	if s.old.Group == "" || s.g.Park != "dead/"+s.old.ID.String() {
		return nil
	}
	g := s.g
	g.Park = ""
	return &g
}

// revived reports whether an operator may bring the job back (core.md 2).
func (s *scene) revived(o *outcome, j *job.Job, r *request) bool {
	o.gate = s.unparked()
	wentOn := j.State == job.Dead && j.Order == job.OrderStrict && !j.BlocksGroup && o.gate == nil
	if wentOn && !r.command.Allow {
		return false
	}
	if j.State == job.Dead && s.otherOwner(j) != nil {
		r.kindOf = job.Exists
		return false
	}
	if wentOn {
		o.note("replayed out of order")
	}
	if j.State == job.Dead {
		j.Attempts, j.Losses, j.Overrides, j.Suppressed, j.Releases, j.LastDelay, j.Isolated = 0, 0, 0, 0, 0, 0, false
		j.CopiesWanted, j.Reason, j.BlocksGroup, j.PurgeAt, j.RevivedAt = j.Copies, job.Alive, false, 0, s.now
		j.DiedAt, j.Replays = 0, j.Replays+1
		if j.ExpiresAt <= s.now {
			j.ExpiresAt = 0
		}
	}
	s.order(j)
	s.place(o, j, r.command.Place)
	j.State, j.ReadyAt, j.Wait = job.Ready, s.now, job.Wait{}
	o.want = j
	return true
}

func (s *scene) order(j *job.Job) {
	if j.Order = s.q.Order; j.Group == "" {
		j.Order = job.OrderNone
	}
}

func (s *scene) patched(o *outcome, j *job.Job, r *request) {
	r.command.Edit(j)
	s.order(j)
	if j.ReadyAt != s.old.ReadyAt && j.State != job.Leased {
		j.Wait = job.Wait{}
	}
	if j.State != job.Leased {
		if j.State = job.Scheduled; j.ReadyAt <= s.now {
			j.State = job.Ready
		}
	}
	if s.old.State == job.Scheduled && j.State == job.Ready {
		s.held(o, j)
	}
	o.want = j
}

// extended is a heartbeat, or the word that the run started.
func (s *scene) extended(r *request) *outcome {
	x := r.extension
	j := s.old.Clone()
	i := j.LeaseOf(x.Token)
	if i < 0 {
		return nil
	}
	l := &j.Leases[i]
	o := &outcome{why: r.String(), verb: rule.Extend, req: r, want: j, state: job.Leased}
	if l.Until > 0 && x.For > 0 {
		l.Until, l.Length = s.steady+x.For, x.For
		o.note("unary lease extended")
	}
	if p := x.Progress; p != nil {
		told := job.RunProgress{Fraction: p.Fraction, Checkpoint: p.Checkpoint, At: s.now}
		if known := knownOf(j); known != nil {
			if told.Fraction < 0 {
				told.Fraction = known.Fraction
			}
			if told.Checkpoint == nil {
				told.Checkpoint = known.Checkpoint
			}
		}
		setProgress(j, &told)
		o.note("progress")
	}
	if x.Started && l.Started == 0 {
		l.Started, l.StartBy = s.now, 0
		l.RunEnd = s.timer(j.RunTimeout, s.q.RunTimeout)
		o.note("run started")
	}
	return o
}

// knownOf is what is known of the run of a job.
func knownOf(j *job.Job) *job.RunProgress {
	if j.Extras == nil {
		return nil
	}
	return j.Extras.Progress
}

// timer is the end of a timeout that begins now; 0 = there is none.
func (s *scene) timer(own, queue job.Millis) job.Millis {
	if own == 0 {
		own = queue
	}
	if own == 0 {
		return 0
	}
	return s.steady + own
}

// carried is what a recovery does to the leases of one holder that survive
// it: no end comes before the re-attach window (or the whole timeout, if that
// is shorter), and none later than it would on the clock of the earlier life,
// nor than the whole timeout from now (docs/adr/0003).
func (s *scene) carried() (list []*outcome) {
	if s.new == nil || len(s.new.Leases) != len(s.old.Leases) {
		return nil
	}
	seen := map[string]bool{}
	for _, l := range s.old.Leases {
		if seen[l.Holder] || l.Kind == job.Anonymous || s.tokens[l.Token].epoch == s.epoch {
			continue
		}
		seen[l.Holder] = true
		j := s.old.Clone()
		for i := range j.Leases {
			if is, got := &j.Leases[i], &s.new.Leases[i]; is.Holder == l.Holder {
				is.Until = s.carry(is.Until, got.Until, s.steady+max(is.Length, reattach))
				is.RunEnd = s.carry(is.RunEnd, got.RunEnd, s.timer(j.RunTimeout, s.q.RunTimeout))
				is.StartBy = s.carry(is.StartBy, got.StartBy, s.timer(j.StartTimeout, s.q.StartTimeout))
			}
		}
		o := &outcome{why: "the recovery", verb: rule.Extend, want: j, state: job.Leased}
		o.note("a lease carried over a restart")
		list = append(list, o)
	}
	return list
}

// stepBack is more than the date is ever set back at once.
const stepBack = 5 * job.Second

// carry answers got where it is a lawful end after a recovery, else the
// nearest lawful one. whole is where the whole timeout would end, 0 = none.
func (s *scene) carry(end, got, whole job.Millis) job.Millis {
	if end == 0 {
		return 0
	}
	// What the store wrote down of the steps of the date may lack the last one.
	first := s.steady + reattach
	if whole > 0 {
		first = min(first, whole)
	}
	last := max(end+max(s.w.clock.shift, 0)+stepBack, first)
	if whole > 0 {
		last = min(last, whole)
	}
	return min(max(got, first), last)
}

// clocked is what the hands due, expire and purge do, never early (I6).
func (s *scene) clocked() (list []*outcome) {
	j := s.old.Clone()
	waiting := j.State == job.Scheduled || j.State == job.Ready
	if j.State == job.Scheduled && j.ReadyAt <= s.now {
		due := j.Clone()
		due.State = job.Ready
		o := &outcome{why: "its due time", verb: rule.Promote, want: due, state: job.Ready}
		s.held(o, due)
		list = append(list, o)
	}
	if waiting && j.ExpiresAt > 0 && j.ExpiresAt <= s.now {
		o := &outcome{why: "its expiry", verb: rule.Expire}
		o.stats.Expired = 1
		list = append(list, s.dead(o, j.Clone(), job.Expired, false))
	}
	if j.State.Terminal() && j.PurgeAt > 0 && j.PurgeAt <= s.now {
		o := &outcome{why: "its retention", verb: rule.Purge, gate: s.unparked()}
		if j.State == job.Dead {
			o.stats.Purged = 1
		}
		list = append(list, o)
	}
	return list
}

// evicted is a place taken by newer work in a full queue: the oldest leave first.
func (s *scene) evicted() []*outcome {
	if s.q.OnFull != job.FullDropOldest || s.old.State != job.Ready && s.old.State != job.Scheduled {
		return nil
	}
	for _, j := range s.book.jobs {
		if j.Queue == s.old.Queue && (j.State == job.Ready || j.State == job.Scheduled) && j.ID.Before(s.old.ID) {
			return nil
		}
	}
	for _, ch := range s.later {
		if ch.old == nil && ch.new != nil && ch.new.Queue == s.old.Queue {
			o := &outcome{why: "newer work", verb: rule.Cancel}
			o.stats.Evicted = 1
			j := s.old.Clone()
			s.recorded(j, 1, nil)
			return []*outcome{s.dead(o, j, job.Evicted, true)}
		}
	}
	return nil
}

// put is a job that comes in.
func (s *scene) put(ch *change) (list []*outcome) {
	j := s.new
	if s.labels[j.ID] != "" {
		broken("core.md 4", "id %s was given to %s already", j.ID, s.name(j.ID))
	}
	for id := range s.book.jobs {
		if !id.Before(j.ID) {
			broken("core.md 4", "id %s is not above that of %s", j.ID, s.name(id))
		}
	}
	parts := partsOf(string(ch.body))
	r, req := s.cronJob(ch)
	if r == nil {
		if r = s.outstanding(parts[0]); r == nil {
			broken("I1", "a job with payload %q came in and nobody asked for it", ch.body)
		}
		req = r
	}
	want := r.put.Job.Clone()
	want.ID, want.Payload, want.PayloadSize = j.ID, j.ID, uint32(len(ch.body))
	want.Created, want.Band, want.Seq = s.now, job.BandNormal, j.Seq
	o := &outcome{why: r.String(), verb: rule.Put, req: req, want: want}
	o.stats.Put = 1
	s.order(want)
	if r.put.Place == job.PlaceFront && want.Order != job.OrderStrict {
		want.Band = job.BandFront
		o.note("put at the front")
	}
	o.draws = append(o.draws, max(j.Seq, -j.Seq)) // lifo draws one below all others
	want.Copies = max(want.Copies, 1)
	want.CopiesWanted = want.Copies
	want.State = job.Scheduled
	if want.ReadyAt <= s.now {
		want.State = job.Ready
		if want.ReadyAt == 0 {
			want.ReadyAt = s.now
		}
	}
	o.state = want.State
	s.newOwner(o, parts, string(ch.body))
	s.room(j)
	s.labels[j.ID] = r.label
	s.born[j.ID] = s.number
	if r.put.Key != "" {
		key := r.receipt()
		s.known[key] = append(s.known[key], receipt{r.content, j.ID, s.number, s.now + s.w.setup.idempotency})
	}
	return []*outcome{o}
}

// room holds a queue to its quotas (core.md 10).
func (s *scene) room(added *job.Job) {
	jobs, bytes := int64(1), int64(added.PayloadSize)
	for _, j := range s.book.jobs {
		if j.Queue == added.Queue && j.State.Open() {
			jobs++
			bytes += int64(j.PayloadSize)
		}
	}
	if s.q.MaxJobs > 0 && jobs > s.q.MaxJobs || s.q.MaxBytes > 0 && bytes > s.q.MaxBytes {
		broken("core.md 10", "queue %s holds %d jobs of %d bytes after a put; it has room for %d and %d",
			added.Queue, jobs, bytes, s.q.MaxJobs, s.q.MaxBytes)
	}
}
