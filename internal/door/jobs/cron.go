package jobs

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// cronPayloadMax bounds the payload of a cron entry: it is kept in memory.
const cronPayloadMax = 64 << 10

// CronGroup reads the body of PUT /crons/{group}.
func (r *Reader) CronGroup() (g cron.GroupAsk, err error) {
	var a cronGroupAsk
	tell := r.Unknown
	if tell == nil {
		tell = func(string, string) error { return nil }
	}
	read := func() (err error) { g, err = a.ask(r, tell); return err }
	if err = problemsOf(r.Body.Bytes(), &a, "", tell, read); err == nil {
		err = read()
	}
	return g, OneRefusal(err)
}

// cronGroupAsk is that body. What an answer says beside it may be sent back.
type cronGroupAsk struct {
	Timezone string         `json:"timezone"`
	Missed   *string        `json:"missed"`
	Paused   *bool          `json:"paused"`
	Entries  cronEntries    `json:"entries"`
	Answered wire.CronGroup `json:",embed"`
}

// CronEntryAsk is the body of POST /crons/{group}/entries and of
// PUT /crons/{group}/entries/{entry}.
type CronEntryAsk struct {
	Name       string         `json:"name"`
	Expression string         `json:"expression"`
	Timezone   string         `json:"timezone"`
	Missed     *string        `json:"missed"`
	Paused     *bool          `json:"paused"`
	Job        jsontext.Value `json:"job"`
	Answered   wire.CronEntry `json:",embed"`
}

// CronPatch is the body of PATCH /crons/{group}: null is the server's zone.
type CronPatch struct {
	Paused   *bool          `json:"paused"`
	Timezone member[string] `json:"timezone"`
	Missed   *string        `json:"missed"`
}

// CronPause is the body of PATCH of an entry.
type CronPause struct {
	Paused *bool `json:"paused"`
}

// cronEntries are read one by one, each as a CronEntryAsk.
type cronEntries []jsontext.Value

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *cronEntries) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginArray {
		if err := d.SkipValue(); err != nil {
			return err
		}
		return errors.New("it is no array")
	}
	*l = cronEntries{}
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != jsontext.KindEndArray {
		var v jsontext.Value
		if v, err = d.ReadValue(); len(*l) < bulkMax { // the rest is not kept
			*l = append(*l, v.Clone())
		}
	}
	if err == nil {
		_, err = d.ReadToken()
	}
	return err
}

// ask is what it asks for; r knows how backoffs count. The error joins one for each
// problem.
func (a *cronGroupAsk) ask(r *Reader, unknown func(path, why string) error) (cron.GroupAsk, error) {
	g := cron.GroupAsk{Zone: a.Timezone, Paused: a.Paused}
	missed, err := missedOf("missed", a.Missed)
	if missed != nil {
		g.Missed = *missed
	}
	bad := []error{err, missing("entries", a.Entries != nil)}
	if len(a.Entries) == bulkMax {
		return g, refuse("entries", "entries must have less than "+strconv.Itoa(bulkMax)+" entries")
	}
	told := 0
	tell := func(path, why string) error {
		if told++; told > unknownMost {
			return nil
		}
		return unknown(path, why)
	}
	for i, body := range a.Entries {
		var entry CronEntryAsk
		var one cron.Ask
		at := "entries[" + strconv.Itoa(i) + "]"
		read := func() (err error) { one, err = entry.ask(r, at+".", "", tell); return err }
		err := problemsOf(body, &entry, at, tell, read)
		if err == nil {
			err = read()
		}
		if g.Entries = append(g.Entries, one); err != nil {
			if bad = append(bad, err); len(bad) > ProblemsMost {
				break
			}
		}
	}
	return g, errors.Join(bad...)
}

// Ask is what it asks for, under the name of the path; "" = its own. The error joins
// one for each problem.
func (a *CronEntryAsk) Ask(r *Reader, named string) (cron.Ask, error) {
	return a.ask(r, "", named, r.Unknown)
}

func (a *CronEntryAsk) ask(r *Reader, path, named string, tell func(path, why string) error) (cron.Ask, error) {
	ask := cron.Ask{Name: cmp.Or(named, a.Name), Expression: a.Expression, Zone: a.Timezone, Paused: a.Paused}
	bad := []error{missing(path+"name", ask.Name != ""), nil, missing(path+"expression", ask.Expression != ""), nil}
	if ask.Name != "" {
		bad[1] = CheckName(path+"name", ask.Name)
	}
	ask.Missed, bad[3] = missedOf(path+"missed", a.Missed)
	n, err := r.template(a.Job, path+"job", tell)
	if ask.Job = n; err != nil {
		bad = append(bad, err)
	}
	return ask, errors.Join(bad...)
}

// Patch is what it asks for.
func (a *CronPatch) Patch() (p cron.Patch, err error) {
	p.Paused = a.Paused
	if a.Timezone.given {
		p.Zone = new(a.Timezone.or(""))
	}
	p.Missed, err = missedOf("missed", a.Missed)
	return p, err
}

// Pause is what it asks for.
func (a *CronPause) Pause() (bool, error) {
	return a.Paused != nil && *a.Paused, missing("paused", a.Paused != nil)
}

func missedOf(field string, word *string) (*job.Missed, error) {
	if word == nil {
		return nil, nil
	}
	m, err := WordOf(field, *word, job.MissedOnce, job.MissedSkip, job.MissedAll)
	return &m, err
}

// template reads a job that is enqueued again and again, as POST /jobs reads one.
func (r *Reader) template(body []byte, path string, tell func(path, why string) error) (n engine.NewJob, err error) {
	own := Reader{Count: r.Count, FoldMax: r.FoldMax, inTemplate: true}
	own.Unknown = func(at, why string) error { return tell(path+"."+at, why) }
	own.Body.Write(body)
	if len(body) == 0 || string(body) == "null" {
		return n, missing(path, false)
	}
	own.start("", nil)
	own.newJob()
	err = own.end()
	if n = own.jobs[0]; err == nil && len(n.Payload) > cronPayloadMax {
		err = refuse("payload", "payload must not be larger than "+strconv.Itoa(cronPayloadMax)+" bytes in a cron entry")
	}
	if bad, ok := errors.AsType[*job.Error](err); ok && !strings.HasPrefix(bad.Field, path) { // Unknown has said where
		sep := "."
		if bad.Field == theJob {
			bad.Field, bad.Text, sep = "", bad.Text[len(theJob):], ""
		}
		bad.Field, bad.Text = path+sep+bad.Field, path+sep+bad.Text
	}
	return n, err
}

// notInTemplate is what makes no sense for a job that is enqueued again and
// again, and why.
var notInTemplate = map[string]string{
	"ready_at":        "its expression says when",
	"idempotency_key": "each tick is a job of its own",
	"expires_at":      "it is one date, and the ticks are many",
}

// barred refuses such a member, if it is one.
func (r *values) barred(name []byte) bool {
	why := notInTemplate[string(name)]
	if why != "" && r.given() != nil {
		r.fail(string(name), "cannot be set in a cron entry: "+why)
	}
	return why != ""
}

// cronGroup and cronEntry are those of package wire with the job as it is told elsewhere.
type (
	cronGroup struct {
		wire.CronGroup
		Entries []cronEntry `json:"entries"`
	}
	cronEntry struct {
		wire.CronEntry
		Job jsontext.Value `json:"job"`
	}
)

// CronOf is a group with its entries as the wire tells it.
func CronOf(g cron.Group) any {
	out := cronGroup{wire.CronGroup{
		Name: g.Name, Paused: new(g.Paused), PausedAt: int64(g.PausedAt), ResumedAt: int64(g.ResumedAt), Timezone: g.Zone,
	}, make([]cronEntry, len(g.Entries))}
	if g.Missed != job.MissedOnce {
		out.Missed = g.Missed.String()
	}
	for i, c := range g.Entries {
		out.Entries[i] = cronEntryOf(c)
	}
	return out
}

// CronEntryOf is an entry as the wire tells it.
func CronEntryOf(c *job.CronEntry) any { return cronEntryOf(c) }

func cronEntryOf(c *job.CronEntry) cronEntry {
	told := members(nil, c.Job, orNull(c.Payload))
	if c.Place != job.PlaceUnset {
		told = word(told, `,"place":"`, c.Place.String())
	}
	out := cronEntry{wire.CronEntry{
		Name: c.Name, Expression: c.Expression, Timezone: c.Zone, Paused: new(c.Paused), PausedAt: int64(c.PausedAt), ResumedAt: int64(c.ResumedAt),
		NextEnqueueAt: int64(c.Next), LastEnqueueAt: int64(c.Last), Skipped: c.Skipped,
	}, append(told, '}')}
	if c.Missed != nil {
		out.Missed = c.Missed.String()
	}
	if c.Last != 0 {
		out.LastJobID = c.LastJob.String()
	}
	if c.Error != "" {
		out.LastError, out.LastErrorAt, out.Failures, out.RetryAt = c.Error, int64(c.ErrorAt), c.Failures, int64(c.Retry)
	}
	return out
}

// CronPreview is what GET /crons/preview asks for.
type CronPreview struct {
	Expression, Zone string
	N                int
}

const (
	previewDefault = 5
	previewMax     = 100
)

// ReadCronPreview reads the query of GET /crons/preview.
func ReadCronPreview(raw string) (CronPreview, error) {
	values, err := strict.Params(raw, "", "expression", "timezone", "n")
	if err != nil {
		return CronPreview{}, err
	}
	p := CronPreview{Expression: values.Get("expression"), Zone: values.Get("timezone")}
	p.N, err = strict.Whole(values, "n", previewDefault, 1, previewMax)
	return p, err
}

// CronPreviewOf is the answer.
func CronPreviewOf(p CronPreview, ticks []job.Millis) wire.CronPreview {
	out := wire.CronPreview{Expression: p.Expression, Timezone: p.Zone, Ticks: make([]int64, len(ticks))}
	for i, at := range ticks {
		out.Ticks[i] = int64(at)
	}
	return out
}
