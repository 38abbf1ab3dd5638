package jobs

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// What a run may be asked for.
const (
	rateMax = 1_000_000
	noteMax = 4 << 10
)

// Run is what a run through the dead set is asked for; dry, it only tells what it would do.
type Run struct {
	job.Replay
	Dry bool
}

// ReplayAsked reads the body of POST /dead/replay. Its error joins one for each problem.
func ReplayAsked(w *wire.DeadReplay) (Run, error) {
	ask, bad := runAsked(&w.Filter, w.All, w.DryRun, w.Rate, w.RampMS)
	var badBudget, badPlace error
	ask.Remaining, badBudget = budgetOf(w.Budget)
	ask.Place, badPlace = placeOf(w.Place)
	ask.Allow, ask.MaxReplays = w.AllowOutOfOrder, wire.MaxReplaysDefault
	if w.MaxReplays != nil {
		ask.MaxReplays = *w.MaxReplays
	}
	return ask, errors.Join(bad, badBudget, badPlace)
}

// DeleteAsked reads the body of POST /dead/delete. Its error joins one for each problem.
func DeleteAsked(w *wire.DeadDelete) (Run, error) {
	ask, err := runAsked(&w.Filter, w.All, w.DryRun, w.Rate, w.RampMS)
	ask.Action = job.ActionDelete
	return ask, err
}

func runAsked(f *wire.DeadFilter, all, dry bool, rate float64, ramp int64) (Run, error) {
	ask := Run{job.Replay{Rate: rate, Ramp: job.Millis(ramp)}, dry}
	var bad []error
	if IsEmpty(f) && !all {
		bad = append(bad, refuse("filter", "filter is empty, which means every dead job; say \"all\": true if that is meant"))
	}
	if rate < 0 || rate > rateMax || math.IsNaN(rate) || rate > 0 && rate < 0.001 {
		bad = append(bad, refuse("rate", "rate must be between 0.001 and "+strconv.Itoa(rateMax)+" jobs a second, or 0 for no limit"))
	}
	switch {
	case ramp < 0 || ramp > int64(job.Day):
		bad = append(bad, refuse("ramp_ms", "ramp_ms must be between 0 and a day"))
	case ramp > 0 && rate == 0:
		bad = append(bad, refuse("ramp_ms", "ramp_ms needs a rate to grow to"))
	}
	var err error
	ask.Select, err = selection("filter.", f)
	return ask, errors.Join(append(bad, err)...)
}

// OneAsked reads the body of POST /dead/{id}/replay. Its error joins one for each problem.
func OneAsked(w *wire.DeadOne) (ask deadset.Revival, err error) {
	ask.Allow, ask.MaxReplays, ask.Payload = w.AllowOutOfOrder, w.MaxReplays, w.Payload
	var badBudget, badPlace, badPayload error
	ask.Remaining, badBudget = budgetOf(w.Budget)
	ask.Place, badPlace = placeOf(w.Place)
	if at, why := job.Unreadable(w.Payload); why != "" {
		badPayload = refuse("payload"+at, "payload"+at+" "+why)
	}
	return ask, errors.Join(badBudget, badPlace, badPayload)
}

func budgetOf(text string) (remaining bool, err error) {
	switch text {
	case "", wire.BudgetFresh:
		return false, nil
	case wire.BudgetRemaining:
		return true, nil
	}
	return false, refuse("budget", "budget must be fresh or remaining")
}

func placeOf(text string) (job.Place, error) {
	if text == "" {
		return job.PlaceUnset, nil
	}
	p, err := job.ParsePlace(text)
	if err != nil {
		return p, refuse("place", "place must be keep, front or back")
	}
	return p, nil
}

// MarkAsked reads the body of PATCH /dead/groups/{fingerprint}.
func MarkAsked(w *wire.Mark) (deadset.MarkEdit, error) {
	switch {
	case w.Fingerprint != "":
		return deadset.MarkEdit{}, refuse("fingerprint", "fingerprint is in the path and not in the body")
	case w.Muted == nil && w.Paused == nil && w.Note == nil:
		return deadset.MarkEdit{}, refuse("muted", "name what shall change: muted, paused or note")
	case w.Note != nil && len(*w.Note) > noteMax:
		return deadset.MarkEdit{}, refuse("note", "note is longer than "+strconv.Itoa(noteMax)+" bytes")
	}
	return deadset.MarkEdit{Muted: w.Muted, Paused: w.Paused, Note: w.Note}, nil
}

// MarkOf is the answer to it.
func MarkOf(m job.Mark) wire.Mark {
	return wire.Mark{Fingerprint: m.Print.String(), Muted: &m.Muted, Paused: &m.Paused, Note: &m.Note}
}

// ReplayOf is a run as the wire tells it.
func ReplayOf(p *job.Replay) wire.Replay {
	w := wire.Replay{
		ID: p.ID.String(), Action: p.Action.String(), Status: p.Progress.String(), Filter: filterBack(&p.Select),
		Total: p.Total, Done: p.Done, Refused: p.Refused, Guarded: p.Guarded, Conflict: p.Conflict, Skipped: p.Gone,
		Rate: p.Rate, RampMS: int64(p.Ramp), Place: p.Place.String(), AllowOutOfOrder: p.Allow, MaxReplays: p.MaxReplays,
		CreatedAt: int64(p.Created), FinishedAt: int64(p.Finished), By: p.By.Name, From: p.By.From,
	}
	if p.Action == job.ActionReplay {
		w.Budget = wire.BudgetFresh
		if p.Remaining {
			w.Budget = wire.BudgetRemaining
		}
	}
	return w
}

func filterBack(s *job.Selection) wire.DeadFilter {
	f := wire.DeadFilter{
		Queues: s.Queues, Types: s.Types, Groups: s.Groups, ErrorTypes: s.ErrorTypes, Text: s.Text,
		DiedFrom: int64(s.DiedFrom), DiedBefore: int64(s.DiedBefore), Filter: s.Filter,
	}
	if s.Filter == "" { // else they are what it chose
		for _, id := range s.IDs {
			f.IDs = append(f.IDs, id.String())
		}
	}
	for _, p := range s.Prints {
		f.Fingerprints = append(f.Fingerprints, p.String())
	}
	for _, r := range s.Reasons {
		f.Reasons = append(f.Reasons, r.String())
	}
	if s.AttemptsFrom > 0 || s.AttemptsBelow > 0 {
		f.Attempts = strconv.Itoa(int(s.AttemptsFrom)) + ".."
		if s.AttemptsBelow > 0 {
			f.Attempts += strconv.Itoa(int(s.AttemptsBelow - 1))
		}
	}
	return f
}

// The trend of a group: deaths in each of so many spans up to now.
const (
	trendBuckets = 24
	trendBucket  = job.Hour
)

// GroupsQuery reads the query of GET /dead/groups.
func GroupsQuery(raw string) (q deadset.GroupQuery, err error) {
	values, err := strict.Params(raw, "", "queue", "fingerprint", "muted", "sort", "limit", "offset")
	if err != nil {
		return q, err
	}
	q = deadset.GroupQuery{Buckets: trendBuckets, Bucket: trendBucket, Most: pageDefault}
	if values.Has("queue") {
		if q.Queues, err = QueueNames(values.Get("queue")); err != nil {
			return q, err
		}
	}
	if values.Has("fingerprint") {
		if q.Prints, err = each("fingerprint", strict.Names(values.Get("fingerprint")), job.ParseFingerprint); err != nil {
			return q, err
		}
	}
	switch values.Get("muted") {
	case "", "false":
		if no := false; len(q.Prints) == 0 {
			q.Muted = &no
		}
	case "true":
		yes := true
		q.Muted = &yes
	case "any":
	default:
		return q, refuse("muted", "muted must be true, false or any")
	}
	switch values.Get("sort") {
	case "", "count":
	case "last_seen":
		q.ByLast = true
	default:
		return q, refuse("sort", "sort must be count or last_seen")
	}
	if q.Most, err = strict.Whole(values, "limit", pageDefault, 1, PageMax); err == nil {
		q.Offset, err = strict.Whole(values, "offset", 0, 0, math.MaxInt32)
	}
	return q, err
}

// messageMax bounds the message that stands for a group.
const messageMax = 500

// GroupOf is a group of the dead set as the wire tells it.
func GroupOf(g *deadset.Group) wire.DeadGroup {
	w := wire.DeadGroup{
		Fingerprint: g.Print.String(), Count: g.Count(), FirstSeen: int64(g.First), LastSeen: int64(g.Last),
		Queues: g.Queues, Reason: g.Reason.String(), Sample: g.Sample.String(), Trend: g.Trend, Held: g.Held,
		Muted: g.Mark.Muted, Paused: g.Mark.Paused, Note: g.Mark.Note,
	}
	if g.Failure != nil {
		w.ErrorType, w.Message = g.Failure.Type, strict.Shorten(rule.Essence(g.Failure.Message), messageMax)
	}
	return w
}

// LogQuery reads the query of GET /replays and GET /audit: entries before one,
// newest first.
func LogQuery(raw string) (before job.ID, limit int, err error) {
	values, err := strict.Params(raw, "", "from", "limit")
	if err != nil {
		return before, 0, err
	}
	if text := values.Get("from"); text != "" {
		if before, err = job.ParseID(text); err != nil {
			return before, 0, refuse("from", "from must be the id of an entry: "+err.Error())
		}
	}
	limit, err = strict.Whole(values, "limit", pageDefault, 1, PageMax)
	return before, limit, err
}

// AuditOf is an entry of the audit log as the wire tells it.
func AuditOf(a *job.Audit) wire.AuditEntry {
	e := wire.AuditEntry{
		ID: a.ID.String(), At: int64(a.At), By: a.By.Name, From: a.By.From, Action: a.Action, Subject: a.Subject, Count: a.Count,
	}
	for _, c := range a.Changes {
		e.Changes = append(e.Changes, wire.AuditChange{Field: c.Field, From: json.RawMessage(c.From), To: json.RawMessage(c.To)})
	}
	return e
}
