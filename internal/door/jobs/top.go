package jobs

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/query"
)

// Bounds of what is sent to one `zizq top`.
const (
	topRows    = 200     // of a window, where nothing is asked for
	topRowsMax = 1000    // of a window
	topBytes   = 1 << 20 // of payloads in one look
	topChanges = 100     // told one by one; more only as a snapshot
)

// Top is what one `zizq top` sees: a window on each of the three lists, and what
// changes in them (Zizq's admin API, GET /events).
type Top struct {
	engine  *part.Engine
	version string
	uptime  func() time.Duration

	windows  [len(query.Watched)]query.Window
	detail   bool
	counts   [len(query.Watched)]int64
	snapshot []byte             // as last sent
	rows     map[job.ID]topSeen // in it
}

// topSeen is a row as it was sent.
type topSeen struct {
	list job.State
	row  []byte
}

// NewTop begins with the heads of the lists. uptime is that of the server.
func NewTop(e *part.Engine, version string, uptime func() time.Duration) *Top {
	t := &Top{engine: e, version: version, uptime: uptime}
	for i, list := range query.Watched {
		t.windows[i] = query.Window{List: list, At: query.Anchor{Kind: query.AtHead}, N: topRows}
	}
	return t
}

// TopAsk is a message of `zizq top`. Each type has some of the members.
type TopAsk struct {
	Type      string    `json:"type"`
	List      string    `json:"list"`
	Anchor    topAnchor `json:"anchor"`
	Limit     *int64    `json:"limit"`
	Detail    bool      `json:"detail"`
	ID        string    `json:"id"`
	Direction string    `json:"direction"`
	Query     topQuery  `json:"query"`

	job  job.ID
	list int // in engine.Watched
	at   query.Anchor
	n    int
}

type topAnchor struct {
	Kind     string `json:"kind"`
	ID       string `json:"id"`
	Fallback string `json:"fallback"`
	Offset   int64  `json:"offset"`
}

// topQuery chooses jobs whose queue, and whose type, have one of the texts in them.
type topQuery struct {
	Queues []string `json:"queues"`
	Types  []string `json:"types"`
}

func (q *topQuery) takes(j *job.Job) bool {
	in := func(texts []string, name string) bool {
		return len(texts) == 0 || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(name, s) })
	}
	return in(q.Queues, j.Queue) && in(q.Types, j.Type)
}

// The types of messages.
const (
	topSubscribe = "subscribe"
	topDetail    = "set_detail_level"
	topFind      = "find"
	// TopDelete deletes Job; the caller does it.
	TopDelete = "delete_job"
)

// Job is the job to delete.
func (a *TopAsk) Job() job.ID { return a.job }

// ReadTopAsk reads a message. Unknown members are passed over.
func ReadTopAsk(text []byte) (*TopAsk, error) {
	a := new(TopAsk)
	if err := json.Unmarshal(text, a); err != nil {
		return nil, refuse("", "invalid JSON: "+err.Error())
	}
	switch a.Type {
	case topDetail:
		return a, nil
	case TopDelete:
		return a, a.readID(a.ID, "id")
	case topSubscribe, topFind:
	default:
		return nil, noneOf("type", a.Type, topSubscribe, topDetail, TopDelete, topFind)
	}
	a.list = slices.IndexFunc(query.Watched[:], func(s job.State) bool { return states[s] == a.List })
	if a.list < 0 {
		return nil, noneOf("list", a.List, states[job.Ready], states[job.Leased], states[job.Scheduled])
	}
	if a.n = topRows; a.Limit != nil {
		a.n = int(min(max(*a.Limit, 0), topRowsMax))
	}
	if a.Type == topFind {
		return a, a.readFind()
	}
	return a, a.readAnchor()
}

func (a *TopAsk) readID(text, field string) (err error) {
	if a.job, err = job.ParseID(text); err != nil {
		return refuse(field, field+" must be the id of a job")
	}
	return nil
}

func (a *TopAsk) readAnchor() error {
	switch kind := &a.at.Kind; a.Anchor.Kind {
	case "head":
		*kind = query.AtHead
	case "tail":
		*kind = query.AtTail
	case "offset":
		*kind, a.at.Offset = query.AtOffset, a.Anchor.Offset
	case "around":
		*kind = query.Around
		switch a.Anchor.Fallback {
		case "", "nowhere":
		case "head":
			a.at.Else = query.AtHead
		case "tail":
			a.at.Else = query.AtTail
		default:
			return noneOf("anchor.fallback", a.Anchor.Fallback, "head", "tail", "nowhere")
		}
		err := a.readID(a.Anchor.ID, "anchor.id")
		a.at.ID = a.job
		return err
	default:
		return noneOf("anchor.kind", a.Anchor.Kind, "around", "offset", "head", "tail")
	}
	return nil
}

func (a *TopAsk) readFind() error {
	if !slices.Contains([]string{"forward", "backward", "locate"}, a.Direction) {
		return noneOf("direction", a.Direction, "forward", "backward", "locate")
	}
	switch a.Anchor.Kind {
	case "start", "end":
		return nil
	case "job_id":
		return a.readID(a.Anchor.ID, "anchor.id")
	}
	return noneOf("anchor.kind", a.Anchor.Kind, "job_id", "start", "end")
}

func noneOf(field, got string, words ...string) error {
	b := quote(nil, field+" ", got)
	return refuse(field, string(b)+" is none of "+strings.Join(words, ", "))
}

// Heard takes a message in, and returns what is sent at once, if anything.
func (t *Top) Heard(ctx context.Context, a *TopAsk) (frames [][]byte, err error) {
	t.rows = nil // what is on the screen may change without a change of a job
	switch a.Type {
	case topDetail:
		t.detail = a.Detail
	case topSubscribe:
		t.windows[a.list] = query.Window{List: query.Watched[a.list], At: a.at, N: a.n}
		t.snapshot = nil // it is answered, even with what is known
	case topFind:
		return t.find(ctx, a)
	}
	return t.Look(ctx)
}

// find answers with the window around the first job that matches, which is from then
// on the window on that list; or with the window as it was.
func (t *Top) find(ctx context.Context, a *TopAsk) ([][]byte, error) {
	list, down := query.Watched[a.list], a.Direction == "backward"
	from, total, there, err := t.engine.Place(ctx, list, a.job)
	if err != nil {
		return nil, err
	}
	switch {
	case there && a.Direction == "forward":
		from++
	case there && down:
		from--
	case there:
	case down || a.Anchor.Kind == "end":
		from = total - 1
	}
	at, found, err := t.engine.Find(ctx, list, from, down, a.Query.takes)
	if err != nil {
		return nil, err
	}
	b := t.begin("find_result")
	b = word(b, `,"list":"`, a.List)
	if b = append(b, `,"matched_position":null`...); found {
		b = number(b[:len(b)-len("null")], "", at)
		t.windows[a.list] = query.Window{List: list, At: query.Anchor{Kind: query.AtOffset, Offset: at - int64(a.n/2)}, N: a.n}
	}
	seen, err := t.look(ctx)
	if err != nil {
		return nil, err
	}
	b, _ = appendWindow(append(b, `,"window":`...), seen[a.list], t.detail, nil)
	return [][]byte{append(b, '}')}, nil
}

func (t *Top) look(ctx context.Context) (seen []query.Seen, err error) {
	if seen, t.counts, err = t.engine.Windows(ctx, t.windows[:]); err != nil {
		return nil, err
	}
	room := topBytes
	for i := range seen {
		if at := &t.windows[i].At; at.Kind == query.Around && seen[i].Found {
			// Should the job leave the list, the window stays where it is.
			*at = query.Anchor{Kind: query.AtOffset, Offset: seen[i].First}
		}
		if !t.detail {
			continue
		}
		n := 0
		for rows := seen[i].Rows; n < len(rows) && rows[n].Bytes() <= room; n++ {
			room -= rows[n].Bytes()
		}
		if err := t.engine.Payloads(ctx, seen[i].Rows[:n]); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// Look returns what is to be sent because something changed since the last look:
// first what became of single rows, then everything.
func (t *Top) Look(ctx context.Context) (frames [][]byte, err error) {
	seen, err := t.look(ctx)
	if err != nil {
		return nil, err
	}
	rows := map[job.ID]topSeen{}
	var b []byte
	for i, list := range query.Watched {
		b = append(word(b, `,"`, states[list]), ':')
		b, rows = appendWindow(b, seen[i], t.detail, rows)
	}
	if bytes.Equal(b, t.snapshot) {
		return nil, nil
	}
	if t.rows != nil {
		if frames, err = t.changes(ctx, rows); err != nil {
			return nil, err
		}
	}
	t.snapshot, t.rows = b, rows
	return append(frames, append(append(t.begin("job_snapshot"), b...), '}')), nil
}

// changes tells what became of single rows, unless that is too much.
func (t *Top) changes(ctx context.Context, now map[job.ID]topSeen) (frames [][]byte, err error) {
	var left []job.ID
	for id, was := range t.rows {
		if is, there := now[id]; !there || is.list != was.list {
			left = append(left, id)
		}
	}
	slices.SortFunc(left, job.ID.Compare)
	for _, id := range slices.SortedFunc(maps.Keys(now), job.ID.Compare) {
		is := now[id]
		if was, there := t.rows[id]; !there || was.list != is.list || !bytes.Equal(was.row, is.row) {
			frames = append(frames, t.changed(id, states[is.list], is.row))
		}
	}
	if len(left)+len(frames) > topChanges {
		return nil, nil
	}
	became := map[job.ID]job.State{}
	if len(left) > 0 {
		list, err := t.engine.List(ctx, engine.Filter{IDs: left}, len(left))
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			became[l.Job.ID] = l.Job.State
		}
	}
	var gone [][]byte
	for _, id := range left {
		is, was := became[id], t.rows[id].list
		if is == was {
			continue // it is outside of the window
		}
		gone = append(gone, t.changed(id, states[was]+"_removed", nil))
		if is.Terminal() {
			gone = append(gone, t.changed(id, states[is], nil))
		}
	}
	return append(gone, frames...), nil
}

func (t *Top) changed(id job.ID, status string, row []byte) []byte {
	b := id.AppendTo(append(t.begin("job_changed"), `,"id":"`...))
	b = word(b, `","status":"`, status)
	if row != nil {
		b = append(append(b, `,"job":`...), row...)
	}
	return append(b, '}')
}

// Heartbeat is sent every two seconds, whatever happens.
func (t *Top) Heartbeat() []byte { return append(t.begin("heartbeat"), '}') }

// begin begins a frame with what each of them says of the server.
func (t *Top) begin(event string) []byte {
	b := word(nil, `{"event":"`, event)
	b = quote(b, `,"server":{"version":`, t.version)
	b = number(b, `,"uptime_ms":`, t.uptime().Milliseconds())
	b = append(b, `,"tier":"enterprise"`...) // Zizq's word for: nothing is left out
	for i, list := range query.Watched {
		b = number(b, `,"total_`+states[list]+`":`, t.counts[i])
	}
	return append(b, '}')
}

// appendWindow also notes its rows, if they are asked for.
func appendWindow(b []byte, s query.Seen, detail bool, rows map[job.ID]topSeen) ([]byte, map[job.ID]topSeen) {
	b = append(b, `{"items":[`...)
	for i := range s.Rows {
		b = comma(b)
		from := len(b)
		b = appendTopRow(b, &s.Rows[i], detail)
		if j := s.Rows[i].Job; rows != nil {
			rows[j.ID] = topSeen{j.State, bytes.Clone(b[from:])}
		}
	}
	b = number(b, `],"first_position":`, s.First)
	return append(number(b, `,"total":`, s.Total), '}'), rows
}

func appendTopRow(b []byte, l *query.Listed, detail bool) []byte {
	j := l.Job
	b = j.ID.AppendTo(append(b, `{"id":"`...))
	b = quote(b, `","queue":`, j.Queue)
	b = quote(b, `,"job_type":`, j.Type)
	b = number(b, `,"priority":`, int64(j.Priority))
	b = number(b, `,"ready_at":`, int64(j.ReadyAt))
	b = number(b, `,"attempts":`, int64(j.Attempts))
	b = positive(b, `,"dequeued_at":`, int64(j.DequeuedAt))
	b = positive(b, `,"failed_at":`, int64(j.FailedAt))
	if !detail {
		return append(b, '}')
	}
	if l.Payload != nil {
		b = append(append(b, `,"payload":`...), l.Payload...)
	}
	if j.Retry != nil {
		b = appendRetry(b, j.Retry)
	}
	b = appendRetention(b, j)
	if j.Extras != nil {
		b = appendKeys(b, j.Extras)
	}
	return append(b, '}')
}
