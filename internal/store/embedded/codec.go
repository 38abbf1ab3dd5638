package embedded

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// Format is the number of the layout on disk: keys in keys.go, values here.
// A number is never used again for another layout.
//
//	1  jobs under their id, payloads and failures apart, rows by table
//	2  more kinds of values, which a version that knows 1 takes for damaged:
//	   rows of sessions and holders that are binary, inline results, spans of
//	   unary leases, cancelled jobs
const Format = 2

// Which optional fields follow in the value of a job.
const (
	hasGroup = 1 << iota
	hasPark
	hasExpiry
	hasHistory // dequeued, failed, completed, purge, revived
	hasGrace
	hasTimeouts
	hasCounters
	hasCopies
	hasRetry
	hasRetention
	hasRequires
	hasSharedPayload
	hasLeases
	hasEnded
	hasFlags // blocks, alone, owns, beside
	hasDelay
	hasReleases
	hasDoor
	hasPrint // print, died, replays
	hasExtras
	hasWait
	hasRank
	hasFinished
)

// appendJob writes everything of a job but its id, which is the key.
func appendJob(b []byte, j *job.Job) []byte {
	flags := flagsOf(j)
	b = append(b, 1, byte(j.State), byte(j.Reason), byte(j.Order), j.Band)
	b = binary.AppendUvarint(b, flags)
	b = appendString(b, j.Queue)
	b = appendString(b, j.Type)
	b = binary.AppendUvarint(b, uint64(j.Priority))
	b = binary.AppendVarint(b, j.Seq)
	b = appendMillis(b, j.Created)
	b = appendMillis(b, j.ReadyAt-j.Created)
	b = binary.AppendUvarint(b, uint64(j.PayloadSize))
	if flags&hasGroup != 0 {
		b = appendString(b, j.Group)
	}
	if flags&hasPark != 0 {
		b = appendString(b, j.Park)
	}
	if flags&hasExpiry != 0 {
		b = appendMillis(b, j.ExpiresAt)
	}
	if flags&hasHistory != 0 {
		b = appendMillis(b, j.DequeuedAt, j.FailedAt, j.CompletedAt, j.PurgeAt, j.RevivedAt)
	}
	if flags&hasGrace != 0 {
		b = appendMillis(b, j.GraceUntil)
	}
	if flags&hasTimeouts != 0 {
		b = appendMillis(b, j.RunTimeout, j.StartTimeout)
	}
	if flags&hasCounters != 0 {
		b = appendCounters(b, j.Attempts, j.Losses, j.Evictions, j.Reschedules, j.Deliveries, j.Suppressed, j.Overrides, j.Failures)
	}
	if flags&hasCopies != 0 {
		b = append(b, j.Copies, j.Wanted)
	}
	if flags&hasRetry != 0 {
		b = appendString(b, string(j.Retry.AppendBinary(nil)))
	}
	return appendRest(b, j, flags)
}

func appendRest(b []byte, j *job.Job, flags uint64) []byte {
	if flags&hasRetention != 0 {
		b = appendMillis(b, j.RetainDone, j.RetainDead)
	}
	if flags&hasRequires != 0 {
		b = binary.AppendUvarint(b, uint64(len(j.Requires)))
		for _, r := range j.Requires {
			b = appendString(appendString(appendString(b, r.Property), r.Op), r.Value)
		}
	}
	if flags&hasSharedPayload != 0 {
		b = append(b, j.Payload[:]...)
	}
	if flags&hasLeases != 0 {
		b = binary.AppendUvarint(b, uint64(len(j.Leases)))
		for i := range j.Leases {
			b = appendLease(b, &j.Leases[i])
		}
	}
	if flags&hasEnded != 0 {
		b = binary.AppendUvarint(b, uint64(len(j.Ended)))
		for _, e := range j.Ended {
			b = binary.BigEndian.AppendUint64(b, e.Hash)
			b = binary.AppendVarint(append(b, byte(e.How)), e.Turn)
		}
	}
	if flags&hasFlags != 0 {
		b = append(b, bit(j.Blocks)|bit(j.Alone)<<1|bit(j.Owns)<<2|bit(j.Beside)<<3)
	}
	if flags&hasDelay != 0 {
		b = appendMillis(b, j.LastDelay)
	}
	if flags&hasReleases != 0 {
		b = appendCounters(b, j.Releases)
	}
	if flags&hasDoor != 0 {
		b = append(b, byte(j.Door))
	}
	if flags&hasPrint != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(j.Print))
		b = appendCounters(appendMillis(b, j.DiedAt), j.Replays)
	}
	if flags&hasExtras != 0 {
		b = appendExtras(b, j.Extras)
	}
	if flags&hasWait != 0 {
		b = append(b, byte(j.Wait.By), j.Wait.Rule)
	}
	if flags&hasRank != 0 {
		b = binary.AppendVarint(b, j.Rank)
	}
	if flags&hasFinished != 0 {
		b = binary.AppendVarint(b, j.Finished)
	}
	return b
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func flagsOf(j *job.Job) uint64 {
	var f uint64
	set := func(flag uint64, on bool) {
		if on {
			f |= flag
		}
	}
	set(hasGroup, j.Group != "")
	set(hasPark, j.Park != "")
	set(hasExpiry, j.ExpiresAt != 0)
	set(hasHistory, j.DequeuedAt|j.FailedAt|j.CompletedAt|j.PurgeAt|j.RevivedAt != 0)
	set(hasGrace, j.GraceUntil != 0)
	set(hasTimeouts, j.RunTimeout|j.StartTimeout != 0)
	set(hasCounters, j.Attempts|j.Losses|j.Evictions|j.Reschedules|j.Deliveries|j.Suppressed|j.Overrides|j.Failures != 0)
	set(hasCopies, j.Copies != 1 || j.Wanted != 1)
	set(hasRetry, j.Retry != nil)
	set(hasRetention, j.RetainDone != job.Unset || j.RetainDead != job.Unset)
	set(hasRequires, len(j.Requires) > 0)
	set(hasSharedPayload, j.Payload != j.ID)
	set(hasLeases, len(j.Leases) > 0)
	set(hasEnded, len(j.Ended) > 0)
	set(hasFlags, j.Blocks || j.Alone || j.Owns || j.Beside)
	set(hasDelay, j.LastDelay != 0)
	set(hasReleases, j.Releases != 0)
	set(hasDoor, j.Door != job.DoorJobs)
	set(hasPrint, j.Print != 0 || j.DiedAt != 0 || j.Replays != 0)
	set(hasExtras, j.Extras != nil)
	set(hasWait, j.Wait != job.Wait{})
	set(hasRank, j.Ranked)
	set(hasFinished, j.Finished != 0)
	return f
}

func appendLease(b []byte, l *job.Lease) []byte {
	b = append(b, l.Token[:]...)
	b = append(b, byte(l.Kind), bit(l.Alone)|bit(l.Host != "")<<1|bit(l.AnyHost)<<2|bit(l.Copy)<<3|bit(l.Commits)<<4|bit(l.Number > 0)<<5|bit(l.Span != 0)<<6)
	b = appendString(b, l.Holder)
	if l.Host != "" {
		b = appendString(b, l.Host)
	}
	if l.Number > 0 {
		b = appendCounters(b, l.Number)
	}
	b = appendMillis(b, l.Since, l.Started, l.Until, l.RunEnd, l.StartBy)
	if l.Span != 0 {
		b = appendMillis(b, l.Span)
	}
	return binary.AppendVarint(b, l.Turn)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendMillis(b []byte, list ...job.Millis) []byte {
	for _, m := range list {
		b = binary.AppendVarint(b, int64(m))
	}
	return b
}

func appendCounters(b []byte, list ...uint32) []byte {
	for _, n := range list {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// reader takes values off a byte slice; the first bad one makes it bad for good.
type reader struct {
	b     []byte
	bad   bool
	names *names // shares the text of queue and type names; may be nil
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) millis() job.Millis { return job.Millis(r.varint()) }
func (r *reader) string() string     { return string(r.bytes(r.uvarint())) }

func (r *reader) name() string {
	b := r.bytes(r.uvarint())
	if r.names == nil {
		return string(b)
	}
	return r.names.share(b)
}

func (r *reader) counter() uint32 { return uint32(r.upTo(math.MaxUint32)) }

func (r *reader) upTo(most uint64) uint64 {
	v := r.uvarint()
	r.bad = r.bad || v > most
	return v
}

// count reads a length and refuses one that cannot fit into what is left.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(n)
}

// decodeJob reads what appendJob wrote.
func decodeJob(id job.ID, b []byte, shared *names) (*job.Job, error) {
	r := reader{b: b, names: shared}
	j := &job.Job{
		ID: id, Payload: id, Copies: 1, Wanted: 1,
		RetainDone: job.Unset, RetainDead: job.Unset,
	}
	if v := r.byte(); v != 1 {
		return nil, corrupt("job %s has layout %d, which this version does not know", id, v)
	}
	j.State, j.Reason, j.Order, j.Band = job.State(r.byte()), job.Reason(r.byte()), job.Order(r.byte()), r.byte()
	flags := r.uvarint()
	j.Queue, j.Type = r.name(), r.name()
	j.Priority = uint16(r.upTo(math.MaxUint16))
	j.Seq = r.varint()
	j.Created = r.millis()
	j.ReadyAt = j.Created + r.millis()
	j.PayloadSize = r.counter()
	if flags != 0 {
		r.optional(j, flags)
	}
	if r.bad || len(r.b) != 0 || j.State == job.None || j.State >= job.States || j.Reason >= job.Reasons || j.Order > job.OrderStrict {
		return nil, corrupt("job %s is damaged", id)
	}
	return j, nil
}

func (r *reader) optional(j *job.Job, flags uint64) {
	if flags&hasGroup != 0 {
		j.Group = r.string()
	}
	if flags&hasPark != 0 {
		j.Park = r.string()
	}
	if flags&hasExpiry != 0 {
		j.ExpiresAt = r.millis()
	}
	if flags&hasHistory != 0 {
		j.DequeuedAt, j.FailedAt, j.CompletedAt, j.PurgeAt, j.RevivedAt = r.millis(), r.millis(), r.millis(), r.millis(), r.millis()
	}
	if flags&hasGrace != 0 {
		j.GraceUntil = r.millis()
	}
	if flags&hasTimeouts != 0 {
		j.RunTimeout, j.StartTimeout = r.millis(), r.millis()
	}
	if flags&hasCounters != 0 {
		j.Attempts, j.Losses, j.Evictions, j.Reschedules = r.counter(), r.counter(), r.counter(), r.counter()
		j.Deliveries, j.Suppressed, j.Overrides, j.Failures = r.counter(), r.counter(), r.counter(), r.counter()
	}
	if flags&hasCopies != 0 {
		j.Copies, j.Wanted = r.byte(), r.byte()
	}
	if flags&hasRetry != 0 {
		retry, rest, err := job.DecodeRetry(r.bytes(r.uvarint()))
		r.bad = r.bad || err != nil || len(rest) != 0
		j.Retry = &retry
	}
	if flags&hasRetention != 0 {
		j.RetainDone, j.RetainDead = r.millis(), r.millis()
	}
	if flags&hasRequires != 0 {
		for n := r.count(); n > 0; n-- {
			j.Requires = append(j.Requires, job.Requirement{Property: r.string(), Op: r.string(), Value: r.string()})
		}
	}
	if flags&hasSharedPayload != 0 {
		copy(j.Payload[:], r.bytes(uint64(len(j.Payload))))
	}
	r.leases(j, flags)
}

func (r *reader) leases(j *job.Job, flags uint64) {
	if flags&hasLeases != 0 {
		for n := r.count(); n > 0 && !r.bad; n-- {
			var l job.Lease
			copy(l.Token[:], r.bytes(uint64(len(l.Token))))
			kind, bits := r.byte(), r.byte()
			l.Kind, l.Alone = job.HolderKind(kind), bits&1 != 0
			l.Holder = r.string()
			if bits&2 != 0 {
				l.Host = r.string()
				r.bad = r.bad || l.Host == ""
			}
			l.AnyHost, l.Copy, l.Commits = bits&4 != 0, bits&8 != 0, bits&16 != 0
			if bits&32 != 0 {
				l.Number = r.counter()
				r.bad = r.bad || l.Number == 0
			}
			l.Since, l.Started, l.Until, l.RunEnd, l.StartBy = r.millis(), r.millis(), r.millis(), r.millis(), r.millis()
			if bits&64 != 0 {
				l.Span = r.millis()
				r.bad = r.bad || l.Span == 0
			}
			l.Turn = r.varint()
			r.bad = r.bad || l.Kind > job.Unary
			j.Leases = append(j.Leases, l)
		}
	}
	if flags&hasEnded != 0 {
		for n := r.count(); n > 0 && !r.bad; n-- {
			var e job.Ended
			if b := r.bytes(8); b != nil {
				e.Hash = binary.BigEndian.Uint64(b)
			}
			e.How, e.Turn = job.Ending(r.byte()), r.varint()
			r.bad = r.bad || e.How >= job.Endings
			j.Ended = append(j.Ended, e)
		}
	}
	if flags&hasFlags != 0 {
		b := r.byte()
		j.Blocks, j.Alone, j.Owns, j.Beside = b&1 != 0, b&2 != 0, b&4 != 0, b&8 != 0
	}
	if flags&hasDelay != 0 {
		j.LastDelay = r.millis()
	}
	if flags&hasReleases != 0 {
		j.Releases = r.counter()
	}
	if flags&hasDoor != 0 {
		j.Door = job.Door(r.byte())
		r.bad = r.bad || j.Door >= job.Doors
	}
	if flags&hasPrint != 0 {
		if b := r.bytes(8); b != nil {
			j.Print = job.Fingerprint(binary.BigEndian.Uint64(b))
		}
		j.DiedAt, j.Replays = r.millis(), r.counter()
	}
	if flags&hasExtras != 0 {
		j.Extras = r.extras()
	}
	if flags&hasWait != 0 {
		j.Wait.By, j.Wait.Rule = job.WaitBy(r.byte()), r.byte()
		r.bad = r.bad || j.Wait.By >= job.WaitBys || j.Wait == job.Wait{}
	}
	if j.Ranked = flags&hasRank != 0; j.Ranked {
		j.Rank = r.varint()
	}
	if flags&hasFinished != 0 {
		j.Finished = r.varint()
		r.bad = r.bad || j.Finished == 0
	}
}

// appendFailure writes layout 1, or one of the others for what that does not hold.
func appendFailure(b []byte, f *job.Failure) []byte {
	layout := byte(1)
	if f.ExitCode != 0 || f.Timeout {
		layout = 2
	}
	if f.Blank != 0 {
		layout = 3
	}
	b = appendCounters(append(b, layout), f.Attempt)
	b = appendString(appendString(appendString(appendString(b, f.Type), f.Message), f.Backtrace), f.Holder)
	b = binary.AppendVarint(b, int64(f.Status))
	b = appendMillis(b, f.Started, f.Failed)
	if layout >= 2 {
		b = append(binary.AppendVarint(b, int64(f.ExitCode)), bit(f.Timeout))
	}
	if layout == 3 {
		b = append(b, byte(f.Blank))
	}
	return b
}

func decodeFailure(number uint32, b []byte) (job.Failure, error) {
	r := reader{b: b}
	f := job.Failure{Number: number}
	layout := r.byte()
	f.Attempt = r.counter()
	f.Type, f.Message, f.Backtrace, f.Holder = r.string(), r.string(), r.string(), r.string()
	f.Status = int(r.varint())
	f.Started, f.Failed = r.millis(), r.millis()
	if layout >= 2 {
		f.ExitCode, f.Timeout = int(r.varint()), r.byte() == 1
	}
	if layout == 3 {
		f.Blank = job.Blank(r.byte())
	}
	if r.bad || layout < 1 || layout > 3 || len(r.b) != 0 {
		return f, corrupt("a failure record is damaged")
	}
	return f, nil
}

// appendRow writes a row. Settings are rare and JSON; the others are small
// and frequent.
func appendRow(b []byte, row job.Row) ([]byte, error) {
	version := byte(1)
	switch t := row.(type) {
	case *job.Gate:
		switch {
		case t.Paused:
			version = 3
		case t.Place != 0 || t.Served != 0:
			version = 2
		}
	case *job.Session, *job.Holder:
		version = 2
	}
	b = append(b, version)
	switch t := row.(type) {
	case *job.Queue:
		text, err := json.Marshal(t)
		return append(b, text...), err
	case *job.CronEntry:
		return appendCronEntry(b, t)
	case *job.Session:
		return appendSession(b, t), nil
	case *job.Holder:
		return appendHolder(b, t), nil
	case *job.Replay, *job.Mark, *job.Audit, *job.CronGroup:
		text, err := json.Marshal(t)
		return append(b, text...), err
	case *job.Gate:
		b = appendString(appendString(b, t.Queue), t.Group)
		b = appendString(appendMillis(b, t.Hold), t.Park)
		b = binary.AppendVarint(binary.AppendVarint(b, t.Turn), t.LastSeq)
		if version > 1 {
			b = binary.AppendUvarint(binary.AppendVarint(b, t.Place), uint64(t.Served))
		}
		return b, nil
	case *job.Throttle:
		text, err := json.Marshal(t)
		return append(b, text...), err
	case *job.Budget:
		text, err := json.Marshal(t)
		return append(b, text...), err
	case *job.DoorSetting:
		return append(appendString(append(b, byte(t.Door)), t.Name), t.Body...), nil
	case *job.Credential:
		text, err := json.Marshal(t)
		return append(b, text...), err
	case *job.Lock:
		return appendLock(b, t), nil
	case *job.Receipt:
		b = append(append(b, t.Content[:]...), t.Job[:]...)
		return appendMillis(b, t.Expires), nil
	case *job.AffinityTag:
		return appendAffinity(b, t), nil
	case *job.Reserve:
		return binary.AppendVarint(appendString(b, t.Name), t.Next), nil
	}
	return nil, fmt.Errorf("embedded: no layout for a row of type %T", row)
}

func decodeRow(t job.Table, key string, b []byte) (job.Row, error) {
	r := reader{b: b}
	v := r.byte()
	latest := byte(1)
	switch t {
	case job.Gates:
		latest = 3
	case job.Sessions, job.Holders:
		latest = 2
	default:
	}
	if v < 1 || v > latest {
		return nil, corrupt("a row has layout %d, which this version does not know", v)
	}
	var row job.Row
	switch t {
	case job.Queues:
		q := &job.Queue{}
		r.bad = json.Unmarshal(r.b, q) != nil || q.Order > job.OrderStrict || q.OnDead > job.DeadPark ||
			q.FrontOrder > job.FrontLIFO || q.OnFull > job.FullDropOldest || q.Protection.Check() != nil ||
			q.Grid != nil && q.Grid.Check() != nil
		r.b, row = nil, q
	case job.Holders:
		if v > 1 {
			row = r.holder()
			break
		}
		h := &job.Holder{}
		r.bad = json.Unmarshal(r.b, h) != nil || h.Kind > job.Unary
		if m := h.Machine; m != nil {
			m.Health.Row, m.Stopping = filled(m.Health.Row), filled(m.Stopping)
		}
		r.b, row = nil, h
	case job.Replays:
		p := &job.Replay{}
		r.bad = json.Unmarshal(r.b, p) != nil || p.Action > job.ActionDelete || p.Progress > job.Cancelled ||
			slices.ContainsFunc(p.Select.Reasons, func(why job.Reason) bool { return why >= job.Reasons })
		r.b, row = nil, p
	case job.Marks:
		m := &job.Mark{}
		r.bad = json.Unmarshal(r.b, m) != nil
		r.b, row = nil, m
	case job.Audits:
		a := &job.Audit{}
		r.bad = json.Unmarshal(r.b, a) != nil
		r.b, row = nil, a
	case job.Gates:
		g := &job.Gate{Queue: r.string(), Group: r.string()}
		g.Hold, g.Park, g.Turn, g.LastSeq = r.millis(), r.string(), r.varint(), r.varint()
		if v > 1 {
			g.Place, g.Served = r.varint(), int(r.upTo(job.WeightMax))
			g.Paused = v > 2
			r.bad = r.bad || v == 2 && g.Place == 0 && g.Served == 0
		}
		row = g
	case job.Receipts:
		c := &job.Receipt{}
		copy(c.Hash[:], key)
		copy(c.Content[:], r.bytes(16))
		c.Job = r.id()
		c.Expires = r.millis()
		row = c
	case job.Reserves:
		row = &job.Reserve{Name: r.string(), Next: r.varint()}
	case job.Throttles:
		t := &job.Throttle{}
		r.bad = json.Unmarshal(r.b, t) != nil || t.State > job.BreakerRamping
		r.b, row = nil, t
	case job.Credentials:
		c := &job.Credential{}
		r.bad = json.Unmarshal(r.b, c) != nil || c.Check() != nil
		r.b, row = nil, c
	case job.CronGroups:
		g := &job.CronGroup{}
		r.bad = json.Unmarshal(r.b, g) != nil || !g.Missed.Valid()
		r.b, row = nil, g
	case job.CronEntries:
		e, ok := decodeCronEntry(r.b)
		if r.bad, r.b = r.bad || !ok, nil; ok {
			row = e
		}
	case job.Budgets:
		b := &job.Budget{}
		r.bad = json.Unmarshal(r.b, b) != nil || b.Check() != nil || b.Jobs < 0
		r.b, row = nil, b
	case job.Locks:
		row = r.lock()
	case job.DoorSettings:
		s := &job.DoorSetting{Door: job.Door(r.byte()), Name: r.string(), Body: append([]byte(nil), r.b...)}
		r.bad, r.b = r.bad || s.Door >= job.Doors, nil
		row = s
	case job.Sessions:
		if v > 1 {
			row = r.session()
			break
		}
		t := &job.Session{}
		r.bad = json.Unmarshal(r.b, t) != nil || !t.State.Valid()
		t.Strikes = filled(t.Strikes)
		for i := range t.Strikes {
			t.Strikes[i].Tasks = filled(t.Strikes[i].Tasks)
		}
		r.b, row = nil, t
	case job.Affinities:
		row = r.affinity()
	case job.Tables:
	}
	if r.bad || row == nil || len(r.b) != 0 || row.Key() != key {
		return nil, corrupt("a row of table %d is damaged", t)
	}
	return row, nil
}

func corrupt(format string, args ...any) *job.Error {
	e := job.Errorf(job.Corrupt, format, args...)
	e.Text += damagedToDo
	return e
}

const damagedToDo = "; the data directory was changed or the disk lost what it had confirmed: stop, copy the directory aside (delete nothing yet), " +
	"and restore a backup; without one, `reprise restore DIRECTORY --root-dir NEW` saves what can be read"
