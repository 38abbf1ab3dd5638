package jobs

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/wire"
)

// cronPayloadMax bounds the payload of a cron entry: it is kept in memory.
const cronPayloadMax = 64 << 10

// CronGroup reads the body of PUT /crons/{group}.
func (r *Reader) CronGroup() (cron.GroupAsk, error) {
	var g cron.GroupAsk
	found := false
	r.whole(func(name []byte) {
		switch string(name) {
		case "timezone":
			g.Zone = r.string("timezone")
		case "missed":
			g.Missed, _ = r.missed()
		case "paused":
			g.Paused = r.flag("paused")
		case "entries":
			found = r.entries("entries", func() {
				g.Entries = append(g.Entries, r.cronEntry("the entry", ""))
			})
		default:
			unknown[wire.CronGroup](r, name)
		}
	})
	r.must("entries", found)
	return g, r.end()
}

// CronEntry reads the body of PUT /crons/{group}/entries/{entry}, whose name
// wins, and of POST /crons/{group}/entries, name "".
func (r *Reader) CronEntry(name string) (cron.Ask, error) {
	r.start()
	a := r.cronEntry("the body", name)
	return a, r.end()
}

// CronPatch reads the body of PATCH /crons/{group}: null is the server's zone.
func (r *Reader) CronPatch() (p cron.Patch, err error) {
	r.whole(func(name []byte) {
		switch string(name) {
		case "paused":
			p.Paused = r.flag("paused")
		case "timezone":
			p.Zone = new(r.string("timezone"))
		case "missed":
			if m, ok := r.missed(); ok {
				p.Missed = &m
			}
		default:
			unknown[wire.CronPatch](r, name)
		}
	})
	return p, r.end()
}

// CronPause reads the body of PATCH of an entry.
func (r *Reader) CronPause() (bool, error) {
	var paused *bool
	r.whole(func(name []byte) {
		if string(name) == "paused" {
			paused = r.flag("paused")
		} else {
			unknown[wire.CronPause](r, name)
		}
	})
	r.must("paused", paused != nil)
	return paused != nil && *paused, r.end()
}

func (r *Reader) cronEntry(what, named string) (a cron.Ask) {
	template := false
	r.must(what, r.object(what, func(name []byte) {
		switch string(name) {
		case "name":
			if own := ""; named == "" {
				a.Name = r.name("name", &own)
			} else {
				r.value()
			}
		case "expression":
			a.Expression = r.string("expression")
		case "timezone":
			a.Zone = r.string("timezone")
		case "missed":
			if m, ok := r.missed(); ok {
				a.Missed = &m
			}
		case "paused":
			a.Paused = r.flag("paused")
		case "job":
			template = true
			a.Job = r.template()
		default:
			unknown[wire.CronEntry](r, name)
		}
	}))
	if named != "" {
		a.Name = named
	}
	r.must("name", a.Name != "")
	r.must("expression", a.Expression != "")
	r.must("job", template)
	return a
}

func (r *values) missed() (job.Missed, bool) {
	return oneOf(r, "missed", job.MissedOnce, job.MissedSkip, job.MissedAll)
}

// flag reads true or false; nil for null.
func (r *values) flag(field string) *bool {
	raw := r.given()
	if raw == nil {
		return nil
	}
	if raw[0] != 't' && raw[0] != 'f' {
		r.fail(field, "must be true or false")
	}
	return new(raw[0] == 't')
}

// template reads a job that is enqueued again and again.
func (r *Reader) template() engine.NewJob {
	r.inTemplate = true
	r.newJob()
	r.inTemplate = false
	n := r.jobs[len(r.jobs)-1]
	if len(n.Payload) > cronPayloadMax {
		r.fail("job.payload", "must not be larger than "+strconv.Itoa(cronPayloadMax)+" bytes in a cron entry")
	}
	return n
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
		r.fail("job."+string(name), "cannot be set in a cron entry: "+why)
	}
	return why != ""
}

// AppendCron appends a group with its entries.
func AppendCron(b []byte, g cron.Group) []byte {
	b = quote(b, `{"name":`, g.Name)
	b = appendPause(b, g.Paused, g.PausedAt, g.ResumedAt)
	if g.Zone != "" {
		b = quote(b, `,"timezone":`, g.Zone)
	}
	if g.Missed != job.MissedOnce {
		b = word(b, `,"missed":"`, g.Missed.String())
	}
	b = append(b, `,"entries":[`...)
	for _, c := range g.Entries {
		b = AppendCronEntry(comma(b), c)
	}
	return append(b, `]}`...)
}

// AppendCronEntry appends an entry.
func AppendCronEntry(b []byte, c *job.CronEntry) []byte {
	b = quote(b, `{"name":`, c.Name)
	b = quote(b, `,"expression":`, c.Expression)
	if c.Zone != "" {
		b = quote(b, `,"timezone":`, c.Zone)
	}
	if c.Missed != nil {
		b = word(b, `,"missed":"`, c.Missed.String())
	}
	b = appendPause(b, c.Paused, c.PausedAt, c.ResumedAt)
	b = appendTemplate(append(b, `,"job":`...), c)
	b = positive(b, `,"next_enqueue_at":`, int64(c.Next))
	b = positive(b, `,"last_enqueue_at":`, int64(c.Last))
	if c.Last != 0 {
		b = append(c.LastJob.AppendTo(append(b, `,"last_job_id":"`...)), '"')
	}
	b = positive(b, `,"skipped":`, c.Skipped)
	if c.Error != "" {
		b = quote(b, `,"last_error":`, c.Error)
		b = number(b, `,"last_error_at":`, int64(c.ErrorAt))
		b = positive(b, `,"failures":`, int64(c.Failures))
		b = positive(b, `,"retry_at":`, int64(c.Retry))
	}
	return append(b, '}')
}

func appendPause(b []byte, paused bool, pausedAt, resumedAt job.Millis) []byte {
	b = strconv.AppendBool(append(b, `,"paused":`...), paused)
	b = positive(b, `,"paused_at":`, int64(pausedAt))
	return positive(b, `,"resumed_at":`, int64(resumedAt))
}

// appendTemplate appends the job of an entry: a job object without what only a
// job that was enqueued has.
func appendTemplate(b []byte, c *job.CronEntry) []byte {
	whole := append(members(nil, c.Job, orNull(c.Payload)), '}')
	dec := jsontext.NewDecoder(bytes.NewReader(whole))
	_, _ = dec.ReadToken() // what we wrote is well formed
	b = append(b, '{')
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadValue()
		if err != nil {
			break
		}
		b, name = comma(b), append([]byte(nil), name...)
		value, _ := dec.ReadValue()
		switch string(name) {
		case `"id"`, `"status"`, `"ready_at"`, `"attempts"`:
			if b[len(b)-1] == ',' {
				b = b[:len(b)-1]
			}
		default:
			b = append(append(append(b, name...), ':'), value...)
		}
	}
	if c.Place != job.PlaceUnset {
		b = word(comma(b), `"place":"`, c.Place.String())
	}
	return append(b, '}')
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
	values, err := Params(raw, "", "expression", "timezone", "n")
	if err != nil {
		return CronPreview{}, err
	}
	p := CronPreview{Expression: values.Get("expression"), Zone: values.Get("timezone"), N: previewDefault}
	if text := values.Get("n"); text != "" {
		if p.N, err = strconv.Atoi(text); err != nil || p.N < 1 || p.N > previewMax {
			return p, refuse("n", "n must be a whole number from 1 to "+strconv.Itoa(previewMax))
		}
	}
	return p, nil
}

// CronPreviewOf is the answer.
func CronPreviewOf(p CronPreview, ticks []job.Millis) wire.CronPreview {
	out := wire.CronPreview{Expression: p.Expression, Timezone: p.Zone, Ticks: make([]int64, len(ticks))}
	for i, at := range ticks {
		out.Ticks[i] = int64(at)
	}
	return out
}
