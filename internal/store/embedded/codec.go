package embedded

import (
	"math"

	"github.com/reprisehq/reprise/internal/codec"
	"github.com/reprisehq/reprise/internal/job"
)

// Format is the number of the layout on disk: keys in keys.go, jobs and failures
// here, rows in layouts.go. A number is never used again for another layout.
//
//	1  jobs under their id, payloads and failures apart, rows by table
//	2  more kinds of values, which a version that knows 1 takes for damaged:
//	   rows of sessions and holders that are binary, inline results, spans of
//	   unary leases, cancelled jobs
const Format = 2

// appendJob writes everything of a job but its id, which is the key.
func appendJob(b []byte, j *job.Job) []byte {
	c := codec.Write(append(b, 1))
	jobFields(&c, j, nil)
	return c.Bytes()
}

// decodeJob reads what appendJob wrote.
func decodeJob(id job.ID, b []byte, shared *names) (*job.Job, error) {
	c, layout := codec.Read(b), byte(0)
	if codec.Byte(&c, &layout); layout != 1 {
		return nil, corrupt("job %s has layout %d, which this version does not know", id, layout)
	}
	j := &job.Job{
		ID: id, Payload: id, Copies: 1, CopiesWanted: 1,
		RetainDone: job.Unset, RetainDead: job.Unset,
	}
	if jobFields(&c, j, shared); !c.Whole() {
		return nil, corrupt("job %s is damaged", id)
	}
	return j, nil
}

// shareNames are texts that many jobs have; shared may be nil.
func shareNames(c *codec.Fields, shared *names, list ...*string) {
	if shared == nil || !c.Reads() {
		c.Text(list...)
		return
	}
	var b []byte
	for _, p := range list {
		c.Piece(&b)
		*p = shared.share(b)
	}
}

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
	partsKnown = 1<<iota - 1
)

func partsOf(j *job.Job) uint64 {
	return flagIf(hasGroup, j.Group != "") |
		flagIf(hasPark, j.Park != "") |
		flagIf(hasExpiry, j.ExpiresAt != 0) |
		flagIf(hasHistory, j.DequeuedAt|j.FailedAt|j.CompletedAt|j.PurgeAt|j.RevivedAt != 0) |
		flagIf(hasGrace, j.GraceUntil != 0) |
		flagIf(hasTimeouts, j.RunTimeout|j.StartTimeout != 0) |
		flagIf(hasCounters, j.Attempts|j.Losses|j.Evictions|j.Reschedules|j.Deliveries|j.Suppressed|j.Overrides|j.Failures != 0) |
		flagIf(hasCopies, j.Copies != 1 || j.CopiesWanted != 1) |
		flagIf(hasRetry, j.Retry != nil) |
		flagIf(hasRetention, j.RetainDone != job.Unset || j.RetainDead != job.Unset) |
		flagIf(hasRequires, len(j.Requires) > 0) |
		flagIf(hasSharedPayload, j.Payload != j.ID) |
		flagIf(hasLeases, len(j.Leases) > 0) |
		flagIf(hasEnded, len(j.Ended) > 0) |
		flagIf(hasFlags, j.BlocksGroup || j.Isolated || j.HoldsKey || j.FailedBesideCopy) |
		flagIf(hasDelay, j.LastDelay != 0) |
		flagIf(hasReleases, j.Releases != 0) |
		flagIf(hasDoor, j.Door != job.DoorJobs) |
		flagIf(hasPrint, j.Print != 0 || j.DiedAt != 0 || j.Replays != 0) |
		flagIf(hasExtras, j.Extras != nil) |
		flagIf(hasWait, j.Wait != job.Wait{}) |
		flagIf(hasRank, j.Ranked) |
		flagIf(hasFinished, j.Finished != 0)
}

func flagIf(flag uint64, is bool) uint64 {
	if is {
		return flag
	}
	return 0
}

// jobFields goes by hand where extraFields goes by a table: this is what is stored most.
func jobFields(c *codec.Fields, j *job.Job, shared *names) {
	head, has := [4]byte{byte(j.State), byte(j.Reason), byte(j.Order), j.Band}, uint64(0)
	if c.Raw(head[:]); c.Reads() {
		j.State, j.Reason, j.Order, j.Band = job.State(head[0]), job.Reason(head[1]), job.Order(head[2]), head[3]
		c.Refuse(j.State == job.None || j.State >= job.States || j.Reason >= job.Reasons || j.Order > job.OrderStrict)
	} else {
		has = partsOf(j)
	}
	codec.Uint(c, &has, partsKnown)
	shareNames(c, shared, &j.Queue, &j.Type)
	codec.Uint(c, &j.Priority, math.MaxUint16)
	codec.Int(c, &j.Seq, (*int64)(&j.Created))
	codec.Since(c, &j.ReadyAt, j.Created)
	c.Counters(&j.PayloadSize)
	if has&(hasSharedPayload-1) != 0 {
		earlyFields(c, j, has)
	}
	if has >= hasSharedPayload {
		lateFields(c, j, has)
	}
}

func earlyFields(c *codec.Fields, j *job.Job, has uint64) {
	if has&hasGroup != 0 {
		c.Text(&j.Group)
	}
	if has&hasPark != 0 {
		c.Text(&j.Park)
	}
	if has&hasExpiry != 0 {
		codec.Int(c, &j.ExpiresAt)
	}
	if has&hasHistory != 0 {
		codec.Int(c, &j.DequeuedAt, &j.FailedAt, &j.CompletedAt, &j.PurgeAt, &j.RevivedAt)
	}
	if has&hasGrace != 0 {
		codec.Int(c, &j.GraceUntil)
	}
	if has&hasTimeouts != 0 {
		codec.Int(c, &j.RunTimeout, &j.StartTimeout)
	}
	if has&hasCounters != 0 {
		c.Counters(&j.Attempts, &j.Losses, &j.Evictions, &j.Reschedules, &j.Deliveries, &j.Suppressed, &j.Overrides, &j.Failures)
	}
	if has&hasCopies != 0 {
		codec.Byte(c, &j.Copies)
		codec.Byte(c, &j.CopiesWanted)
	}
	if has&hasRetry != 0 {
		retryField(c, &j.Retry)
	}
	if has&hasRetention != 0 {
		codec.Int(c, &j.RetainDone, &j.RetainDead)
	}
	if has&hasRequires != 0 {
		for i := range codec.List(c, &j.Requires) {
			r := &j.Requires[i]
			c.Text(&r.Property, &r.Op, &r.Value)
		}
	}
}

func retryField(c *codec.Fields, p **job.Retry) {
	var b []byte
	if !c.Reads() {
		b = (*p).AppendBinary(nil)
	}
	if c.Piece(&b); c.Reads() {
		retry, rest, err := job.DecodeRetry(b)
		c.Refuse(err != nil || len(rest) != 0)
		*p = &retry
	}
}

func lateFields(c *codec.Fields, j *job.Job, has uint64) {
	if has&hasSharedPayload != 0 {
		c.Raw(j.Payload[:])
	}
	if has&hasLeases != 0 {
		for i := range codec.List(c, &j.Leases) {
			l := &j.Leases[i]
			leaseFields(c, l)
		}
	}
	if has&hasEnded != 0 {
		for i := range codec.List(c, &j.Ended) {
			e := &j.Ended[i]
			c.Uint64(&e.Hash)
			codec.Enum(c, &e.How, job.Endings)
			codec.Int(c, &e.Turn)
		}
	}
	if has&hasFlags != 0 {
		c.Bits(&j.BlocksGroup, &j.Isolated, &j.HoldsKey, &j.FailedBesideCopy)
	}
	if has&hasDelay != 0 {
		codec.Int(c, &j.LastDelay)
	}
	if has&hasReleases != 0 {
		c.Counters(&j.Releases)
	}
	if has&hasDoor != 0 {
		codec.Enum(c, &j.Door, job.Doors)
	}
	if has&hasPrint != 0 {
		c.Uint64((*uint64)(&j.Print))
		codec.Int(c, &j.DiedAt)
		c.Counters(&j.Replays)
	}
	if has&hasExtras != 0 {
		extraFields(c, codec.New(c, &j.Extras))
	}
	if has&hasWait != 0 {
		codec.Enum(c, &j.Wait.By, job.WaitBys)
		codec.Byte(c, &j.Wait.Rule)
		c.Refuse(j.Wait == job.Wait{})
	}
	if has&hasRank != 0 {
		c.Mark(&j.Ranked)
		codec.Int(c, &j.Rank)
	}
	if has&hasFinished != 0 {
		codec.Int(c, &j.Finished)
		c.Refuse(j.Finished == 0)
	}
}

func leaseFields(c *codec.Fields, l *job.Lease) {
	c.Raw(l.Token[:])
	codec.Enum(c, &l.Kind, job.Unary+1)
	host, number, span := l.Host != "", l.Number > 0, l.Length != 0
	c.Bits(&l.Exclusive, &host, &l.AnyHost, &l.Copy, &l.Commits, &number, &span)
	c.Text(&l.Holder)
	if host {
		c.Text(&l.Host)
		c.Refuse(l.Host == "")
	}
	if number {
		c.Counters(&l.Number)
		c.Refuse(l.Number == 0)
	}
	codec.Int(c, &l.Since, &l.Started, &l.Until, &l.RunEnd, &l.StartBy)
	if span {
		codec.Int(c, &l.Length)
		c.Refuse(l.Length == 0)
	}
	codec.Int(c, &l.Turn)
}

// appendFailure writes layout 1, or one of the others for what that does not hold.
func appendFailure(b []byte, f *job.Failure) []byte {
	c := codec.Write(b)
	failureFields(&c, f)
	return c.Bytes()
}

func decodeFailure(number uint32, b []byte) (job.Failure, error) {
	c, f := codec.Read(b), job.Failure{Number: number}
	if failureFields(&c, &f); !c.Whole() {
		return f, corrupt("a failure record is damaged")
	}
	return f, nil
}

func failureFields(c *codec.Fields, f *job.Failure) {
	layout := byte(1)
	if f.ExitCode != 0 || f.Timeout {
		layout = 2
	}
	if f.Blank != 0 {
		layout = 3
	}
	codec.Enum(c, &layout, 4)
	c.Refuse(layout == 0)
	c.Counters(&f.Attempt)
	c.Text(&f.Type, &f.Message, &f.Backtrace, &f.Holder)
	codec.Int(c, &f.Status)
	codec.Int(c, &f.Started, &f.Failed)
	if layout >= 2 {
		codec.Int(c, &f.ExitCode)
		c.Bits(&f.Timeout)
	}
	if layout == 3 {
		codec.Byte(c, &f.Blank)
	}
}

func corrupt(format string, args ...any) *job.Error {
	e := job.Errorf(job.Corrupt, format, args...)
	e.Text += damagedToDo
	return e
}

const damagedToDo = "; the data directory was changed or the disk lost what it had confirmed: stop, copy the directory aside (delete nothing yet), " +
	"and restore a backup; without one, `reprise restore DIRECTORY --root-dir NEW` saves what can be read"
