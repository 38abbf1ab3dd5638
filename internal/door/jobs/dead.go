package jobs

import (
	"context"
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/jq"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// What a filter may hold.
const (
	filterValuesMax = 1000
	filterTextMax   = 1000
)

var deadParams = []string{
	"id", "queue", "type", "group", "reason", "fingerprint", "error_type", "text", "died_from", "died_before", "attempts", "filter",
}

// Selection reads a filter over the dead set.
func Selection(f *wire.DeadFilter) (job.Selection, error) {
	s, err := selection("", f)
	return s, OneRefusal(err)
}

// selection reads a filter that stands at a path. Its error joins one for each problem.
func selection(path string, f *wire.DeadFilter) (job.Selection, error) {
	s := job.Selection{
		Queues: f.Queues, Types: f.Types, Groups: f.Groups, ErrorTypes: f.ErrorTypes, Text: f.Text, Filter: f.Filter,
		DiedFrom: job.Millis(f.DiedFrom), DiedBefore: job.Millis(f.DiedBefore),
	}
	var bad []error
	wrong := func(name, why string) { bad = append(bad, refuse(path+name, path+name+" "+why)) }
	for _, given := range []struct {
		name string
		list []string
	}{
		{"id", f.IDs},
		{"queue", f.Queues},
		{"type", f.Types},
		{"group", f.Groups},
		{"reason", f.Reasons},
		{"fingerprint", f.Fingerprints},
		{"error_type", f.ErrorTypes},
	} {
		if len(given.list) > filterValuesMax {
			wrong(given.name, "has more than "+strconv.Itoa(filterValuesMax)+" values")
		}
	}
	if len(f.Text) > filterTextMax {
		wrong("text", "is longer than "+strconv.Itoa(filterTextMax)+" bytes")
	}
	var badIDs, badPrints, badReasons, badFilter error
	s.IDs, badIDs = each(path+"id", f.IDs, job.ParseID)
	s.Prints, badPrints = each(path+"fingerprint", f.Fingerprints, job.ParseFingerprint)
	s.Reasons, badReasons = each(path+"reason", f.Reasons, reason)
	bad = append(bad, queueNames(path+"queue", f.Queues), badIDs, badPrints, badReasons)
	switch {
	case f.DiedFrom < 0 || f.DiedBefore < 0:
		wrong("died_from", "and died_before must be times in milliseconds since 1970")
	case f.DiedBefore > 0 && f.DiedBefore <= f.DiedFrom:
		wrong("died_before", "must be after died_from")
	}
	if f.Filter != "" {
		_, badFilter = compileFilter(f.Filter)
	}
	return s, errors.Join(append(bad, badFilter, attempts(&s, path+"attempts", f.Attempts))...)
}

// judgeDead is what a selection does to payloads: nil without a filter.
func judgeDead(s *job.Selection) (*jq.Program, query.Judge) {
	if s.Filter == "" {
		return nil, nil
	}
	p, err := compileFilter(s.Filter)
	if err != nil { // Selection has compiled it
		panic(err)
	}
	return p, judge(p)
}

func each[T any](name string, list []string, parse func(string) (T, error)) (out []T, err error) {
	for _, text := range list {
		v, err := parse(text)
		if err != nil {
			return nil, refuse(name, name+" "+strconv.Quote(strict.Shorten(text, 64))+": "+err.Error())
		}
		out = append(out, v)
	}
	return out, nil
}

func reason(text string) (job.Reason, error) {
	if at := slices.Index(wire.Reasons, text); at >= 0 {
		return job.Exhausted + job.Reason(at), nil
	}
	return 0, refuse("reason", "a reason is one of "+strings.Join(wire.Reasons, ", ")+spell.Hint(text, wire.Reasons))
}

func attempts(s *job.Selection, field, value string) error {
	if value == "" {
		return nil
	}
	lo, hi, err := rangeOf(field, value)
	if err != nil {
		return err
	}
	s.AttemptsFrom = uint32(min(lo, math.MaxUint32))
	if hi < math.MaxUint32 {
		s.AttemptsBelow = uint32(hi) + 1
	}
	return nil
}

// IsEmpty reports whether a filter chooses everything.
func IsEmpty(f *wire.DeadFilter) bool {
	return len(f.IDs)+len(f.Queues)+len(f.Types)+len(f.Groups)+len(f.Reasons)+len(f.Fingerprints)+len(f.ErrorTypes) == 0 &&
		f.Text == "" && f.DiedFrom == 0 && f.DiedBefore == 0 && f.Attempts == "" && f.Filter == ""
}

// filterOf reads the parameters of a filter.
func filterOf(values url.Values) (f wire.DeadFilter, err error) {
	for name, into := range map[string]*[]string{
		"id": &f.IDs, "queue": &f.Queues, "type": &f.Types, "group": &f.Groups, "reason": &f.Reasons,
		"fingerprint": &f.Fingerprints, "error_type": &f.ErrorTypes,
	} {
		if values.Has(name) {
			*into = strict.Names(values.Get(name))
		}
	}
	f.Text, f.Attempts, f.Filter = values.Get("text"), values.Get("attempts"), values.Get("filter")
	for name, into := range map[string]*int64{"died_from": &f.DiedFrom, "died_before": &f.DiedBefore} {
		if text := values.Get(name); text != "" && err == nil {
			if *into, err = strconv.ParseInt(text, 10, 64); err != nil {
				err = refuse(name, name+" must be a time in milliseconds since 1970")
			}
		}
	}
	return f, err
}

// DeadQuery is what GET /dead and GET /dead/export ask for.
type DeadQuery struct {
	Query
	Select job.Selection
}

// ReadDeadQuery reads the query of GET /dead.
func ReadDeadQuery(raw string) (*DeadQuery, error) { return readDeadQuery("/dead", raw, pageParams) }

// ReadExportQuery reads the query of GET /dead/export, which has no pages.
func ReadExportQuery(raw string) (*DeadQuery, error) { return readDeadQuery("/dead/export", raw, nil) }

func readDeadQuery(path, raw string, paging []string) (*DeadQuery, error) {
	q := &DeadQuery{Query: Query{path: path, limit: pageDefault}}
	values, err := strict.Params(raw, "", slices.Concat(paging, deadParams)...)
	if err != nil {
		return nil, err
	}
	for _, name := range paging {
		if value := values.Get(name); value != "" {
			if err := q.set(name, value); err != nil {
				return nil, err
			}
		}
	}
	q.filter.Desc = q.desc
	if q.from != "" {
		if q.filter.From, err = job.ParseID(q.from); err != nil {
			return nil, refuse("from", "from must be a job ID: "+err.Error())
		}
	}
	for _, name := range deadParams {
		if value := values.Get(name); value != "" {
			q.tail += "&" + name + "=" + url.QueryEscape(value)
		}
	}
	f, err := filterOf(values)
	if err == nil {
		q.Select, err = Selection(&f)
	}
	return q, err
}

// Find returns the rows of a page, in the order of the search.
func (q *DeadQuery) Find(ctx context.Context, e *part.Engine, room engine.Room) (f Found[deadset.Dead], err error) {
	sieve, judge := judgeDead(&q.Select)
	err = bounded(ctx, sieve, func(ctx context.Context) error {
		f.Rows, f.More, err = e.Dead.Jobs(ctx, deadset.Page{
			Select: &q.Select, Judge: judge, From: q.filter.From, Desc: q.filter.Desc, Most: q.limit, Payload: true, Room: room,
		})
		return err
	})
	return f, err
}

// Each calls f for every job that the query chooses, by id.
func (q *DeadQuery) Each(ctx context.Context, e *part.Engine, f func(deadset.Dead) (more bool, err error)) error {
	_, judge := judgeDead(&q.Select)
	return e.Dead.Each(ctx, &q.Select, judge, f)
}

// PreviewRun tells what a run would do.
func PreviewRun(ctx context.Context, e *part.Engine, s *job.Selection) (p deadset.Preview, err error) {
	sieve, judge := judgeDead(s)
	err = bounded(ctx, sieve, func(ctx context.Context) error {
		p, err = e.Dead.PreviewReplay(ctx, s, judge)
		return err
	})
	return p, err
}

// StartRun begins a run through the dead set.
func StartRun(ctx context.Context, e *part.Engine, ask job.Replay) (p *job.Replay, err error) {
	sieve, judge := judgeDead(&ask.Select)
	err = bounded(ctx, sieve, func(ctx context.Context) error {
		p, err = e.Dead.StartReplay(ctx, ask, judge)
		return err
	})
	return p, err
}

// AppendPage appends the answer to GET /dead with what Find returned.
func (q *DeadQuery) AppendPage(b []byte, f Found[deadset.Dead]) []byte {
	return appendPage(b, `{"jobs":[`, &q.Query, f, AppendDead, func(d deadset.Dead) string { return d.Job.ID.String() })
}

// AppendDead appends a dead job with its payload and its latest error.
func AppendDead(b []byte, d deadset.Dead) []byte {
	b = members(b, d.Job, orNull(d.Payload))
	b = word(b, `,"fingerprint":"`, d.Job.Print.String())
	b = number(b, `,"died_at":`, int64(d.Job.DiedAt))
	b = positive(b, `,"replays":`, int64(d.Job.Replays))
	if d.Failure != nil {
		b = AppendFailure(append(b, `,"error":`...), *d.Failure)
	}
	return append(b, '}')
}

// AppendDryRun appends what a run would do.
func AppendDryRun(b []byte, p deadset.Preview) []byte {
	return appendDryRun(b, p.Count, p.Sample, AppendDead)
}

func appendDryRun[T any](b []byte, count int64, sample []T, row func([]byte, T) []byte) []byte {
	b = append(number(b, `{"dry_run":true,"count":`, count), `,"sample":[`...)
	for _, x := range sample {
		b = row(comma(b), x)
	}
	return append(b, `]}`...)
}
