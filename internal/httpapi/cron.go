package httpapi

import (
	"cmp"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/wire"
)

// cronRoom serves groups of cron entries. Entries name any queue, so no call of
// it is for a token for some.
type cronRoom struct{ *core }

func (h *cronRoom) routes() []route {
	const group, entry = "/crons/{group}", "/crons/{group}/entries/{entry}"
	return []route{
		get("/crons", reads, wholeServer, h.bare(h.list)),
		del("/crons", operates, wholeServer, h.bare(h.removeAll)),
		get(group, reads, wholeServer, h.bare(h.show)), // and GET /crons/preview
		put(group, operates, wholeServer, h.raw(h.set)),
		patch(group, operates, wholeServer, asking(h.core, lenient, fromBody((*jobs.CronPatch).Patch), h.change)),
		del(group, operates, wholeServer, h.bare(h.remove)),
		post(group+"/entries", operates, wholeServer, asking(h.core, lenient, entryOf, h.addEntry)),
		get(entry, reads, wholeServer, h.bare(h.showEntry)),
		put(entry, operates, wholeServer, asking(h.core, lenient, entryOf, h.setEntry)),
		patch(entry, operates, wholeServer, asking(h.core, lenient, fromBody((*jobs.CronPause).Pause), h.pauseEntry)),
		del(entry, operates, wholeServer, h.bare(h.removeEntry)),
		post(entry+"/run", operates, wholeServer, h.raw(h.run)),
	}
}

var cronGroup, cronEntry = shown(jobs.CronOf), shown(jobs.CronEntryOf)

// list is GET /crons.
func (h *cronRoom) list(c *call) (any, error) {
	names, err := h.engine.Crons.List(c.Context())
	return wire.Crons{Crons: names}, err
}

// removeAll is DELETE /crons.
func (h *cronRoom) removeAll(c *call) (any, error) {
	if err := h.guardedAll(c); err != nil {
		return nil, err
	}
	n, err := h.engine.Crons.DeleteAll(c.Context(), c.by)
	return wire.CronsDeleted{Deleted: n}, err
}

// show is GET /crons/{group}, and GET /crons/preview?expression=...
func (h *cronRoom) show(c *call) (any, error) {
	if c.id == "preview" && strings.Contains(c.URL.RawQuery, "expression=") { // a group may have that name
		return h.preview(c)
	}
	return cronGroup(h.engine.Crons.Get(c.Context(), c.id))
}

func (h *cronRoom) preview(c *call) (any, error) {
	p, err := jobs.ReadCronPreview(c.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	ticks, err := h.engine.Crons.Preview(p.Expression, p.Zone, p.N)
	return jobs.CronPreviewOf(p, ticks), err
}

// set is PUT /crons/{group}. Its body may be as large as any: it can hold payloads.
func (h *cronRoom) set(c *call) (any, error) {
	ask, err := c.s.CronGroup()
	if err = cmp.Or(jobs.CheckName("name", c.id), err); err != nil {
		return nil, err
	}
	return cronGroup(h.engine.Crons.Set(c.Context(), c.id, ask, c.by))
}

// change is PATCH /crons/{group}.
func (h *cronRoom) change(c *call, ask cron.Patch) (any, error) {
	return cronGroup(h.engine.Crons.Patch(c.Context(), c.id, ask, c.by))
}

// remove is DELETE /crons/{group}.
func (h *cronRoom) remove(c *call) (any, error) {
	return nil, h.engine.Crons.Delete(c.Context(), c.id, c.by)
}

// entryOf is the entry that is asked for, under the name of the path if that has one.
func entryOf(c *call, body *jobs.CronEntryAsk) (cron.Ask, error) {
	if err := jobs.CheckName("name", c.id); err != nil {
		return cron.Ask{}, err
	}
	return body.Ask(&c.s.Reader, c.sub)
}

// addEntry is POST /crons/{group}/entries.
func (h *cronRoom) addEntry(c *call, ask cron.Ask) (any, error) {
	return c.made(cronEntry(h.engine.Crons.AddEntry(c.Context(), c.id, ask, c.by)))
}

// showEntry is GET /crons/{group}/entries/{entry}.
func (h *cronRoom) showEntry(c *call) (any, error) {
	return cronEntry(h.engine.Crons.Entry(c.Context(), c.id, c.sub))
}

// setEntry is PUT /crons/{group}/entries/{entry}.
func (h *cronRoom) setEntry(c *call, ask cron.Ask) (any, error) {
	return cronEntry(h.engine.Crons.SetEntry(c.Context(), c.id, ask, c.by))
}

// pauseEntry is PATCH /crons/{group}/entries/{entry}.
func (h *cronRoom) pauseEntry(c *call, paused bool) (any, error) {
	return cronEntry(h.engine.Crons.PauseEntry(c.Context(), c.id, c.sub, paused, c.by))
}

// removeEntry is DELETE /crons/{group}/entries/{entry}.
func (h *cronRoom) removeEntry(c *call) (any, error) {
	return nil, h.engine.Crons.DeleteEntry(c.Context(), c.id, c.sub, c.by)
}

// run is POST /crons/{group}/entries/{entry}/run. It answers like an enqueue.
func (h *cronRoom) run(c *call) (any, error) {
	added, asked, err := h.engine.Crons.Run(c.Context(), c.id, c.sub, c.by)
	c.status = created([]engine.Added{added})
	return appended(func(b []byte) []byte { return jobs.AppendAdded(b, added, &asked) }), err
}
