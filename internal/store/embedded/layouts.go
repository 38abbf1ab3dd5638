package embedded

import (
	"encoding/json"
	"slices"

	"github.com/reprisehq/reprise/internal/codec"
	"github.com/reprisehq/reprise/internal/job"
)

// layout is how the rows of a table are stored: a byte that numbers the layout, and
// JSON for settings, which are rare, or fields.
type layout struct {
	texts  byte // layouts up to this one are JSON
	latest byte
	blank  func() job.Row
	valid  func(job.Row) bool // asked of what was JSON
	fields func(c *codec.Fields, row job.Row, n byte)
	number func(job.Row) byte // of the layout that is written; nil = the latest
}

// rowOf is a pointer to a kind of row.
type rowOf[T any] interface {
	*T
	job.Row
}

// asText is rows that are JSON.
func asText[T any, R rowOf[T]](valid func(R) bool) layout {
	return layout{
		texts: 1, latest: 1, blank: func() job.Row { return R(new(T)) },
		valid: func(r job.Row) bool { return valid(r.(R)) },
	}
}

// packed is rows of fields.
func packed[T any, R rowOf[T]](fields func(c *codec.Fields, r R)) layout {
	return layout{
		latest: 1, blank: func() job.Row { return R(new(T)) },
		fields: func(c *codec.Fields, r job.Row, _ byte) { fields(c, r.(R)) },
	}
}

// wasText is rows of fields whose first layout was JSON.
func wasText[T any, R rowOf[T]](fields func(c *codec.Fields, r R), valid func(R) bool) layout {
	l := packed(fields)
	l.texts, l.latest, l.valid = 1, 2, asText(valid).valid
	return l
}

func always[T any](T) bool { return true }

// layouts are those of all tables.
var layouts = [job.Tables]layout{
	job.Queues: asText(func(q *job.Queue) bool {
		return q.Order <= job.OrderStrict && q.OnDead <= job.DeadPark && q.FrontOrder <= job.FrontLIFO && q.OnFull <= job.FullDropOldest &&
			q.Protection.Check() == nil && (q.Grid == nil || q.Grid.Check() == nil)
	}),
	job.Gates: {
		latest: 3, blank: func() job.Row { return &job.Gate{} },
		fields: func(c *codec.Fields, r job.Row, n byte) { gateFields(c, r.(*job.Gate), n) }, number: gateLayout,
	},
	job.Holders:  wasText(holderFields, validHolder),
	job.Receipts: packed(receiptFields),
	job.Reserves: packed(func(c *codec.Fields, r *job.Reserve) {
		c.Text(&r.Name)
		codec.Int(c, &r.Next)
	}),
	job.Replays: asText(func(p *job.Replay) bool {
		return p.Action <= job.ActionDelete && p.Progress <= job.Cancelled &&
			!slices.ContainsFunc(p.Select.Reasons, func(why job.Reason) bool { return why >= job.Reasons })
	}),
	job.Marks:       asText(always[*job.Mark]),
	job.Audits:      asText(always[*job.Audit]),
	job.Throttles:   asText(func(t *job.Throttle) bool { return t.State <= job.BreakerRamping }),
	job.Credentials: asText(func(c *job.Credential) bool { return c.Check() == nil }),
	job.CronGroups:  asText(func(g *job.CronGroup) bool { return g.Missed.Valid() }),
	job.CronEntries: asText((*cronEntry).valid),
	job.Budgets:     asText(func(b *job.Budget) bool { return b.Check() == nil && b.Jobs >= 0 }),
	job.Locks:       packed(lockFields),
	job.DoorSettings: packed(func(c *codec.Fields, s *job.DoorSetting) {
		codec.Enum(c, &s.Door, job.Doors)
		c.Text(&s.Name)
		c.Rest(&s.Body)
	}),
	job.Sessions: wasText(sessionFields, validSession),
	job.Affinities: packed(func(c *codec.Fields, t *job.AffinityTag) {
		c.Text(&t.Session, &t.Tag)
		texts(c, &t.Engines)
		c.Raw(t.Head[:])
		codec.Int(c, &t.Until)
		c.Refuse(len(t.Engines) > job.AffinityEngines)
	}),
	job.Cursors: packed(func(c *codec.Fields, r *job.Cursor) {
		c.Text(&r.Input, &r.Source)
		c.Rest(&r.Body)
	}),
}

func appendRow(b []byte, row job.Row) ([]byte, error) {
	l := &layouts[row.Table()]
	n := l.latest
	if l.number != nil {
		n = l.number(row)
	}
	b = append(b, n)
	if n > l.texts {
		c := codec.Write(b)
		l.fields(&c, row, n)
		return c.Bytes(), nil
	}
	if e, ok := row.(*job.CronEntry); ok {
		row = cronEntryOf(e)
	}
	text, err := json.Marshal(row)
	return append(b, text...), err
}

func decodeRow(t job.Table, key string, b []byte) (job.Row, error) {
	damaged := func() (job.Row, error) { return nil, corrupt("a row of table %d is damaged", t) }
	if t >= job.Tables {
		return damaged()
	}
	c, l, n := codec.Read(b), &layouts[t], byte(0)
	if codec.Byte(&c, &n); n < 1 || n > l.latest {
		return nil, corrupt("a row has layout %d, which this version does not know", n)
	}
	row := l.blank()
	if r, ok := row.(*job.Receipt); ok {
		copy(r.Hash[:], key)
	}
	if n > l.texts {
		if l.fields(&c, row, n); !c.Whole() {
			return damaged()
		}
	} else if json.Unmarshal(c.Bytes(), row) != nil || !l.valid(row) {
		return damaged()
	}
	if row.Key() != key {
		return damaged()
	}
	if e, ok := row.(*cronEntry); ok {
		return &e.CronEntry, nil
	}
	return row, nil
}

// appendReceipt and decodeReceipt go past the table: there are many receipts.
func appendReceipt(b []byte, r *job.Receipt) []byte {
	c := codec.Write(append(b, 1))
	receiptFields(&c, r)
	return c.Bytes()
}

func decodeReceipt(hash *[16]byte, b []byte) (*job.Receipt, error) {
	c, n, r := codec.Read(b), byte(0), &job.Receipt{Hash: *hash}
	codec.Byte(&c, &n)
	if receiptFields(&c, r); n != 1 || !c.Whole() {
		_, err := decodeRow(job.Receipts, r.Key(), b)
		return nil, err
	}
	return r, nil
}

// receiptFields are those behind its hash, which is the key.
func receiptFields(c *codec.Fields, r *job.Receipt) {
	c.Raw(r.Content[:])
	c.Raw(r.Job[:])
	codec.Int(c, &r.Expires)
}

// gateLayout is the first one that has what a gate is.
func gateLayout(r job.Row) byte {
	switch g := r.(*job.Gate); {
	case g.Paused:
		return 3
	case g.Place != 0 || g.Served != 0:
		return 2
	}
	return 1
}

func gateFields(c *codec.Fields, g *job.Gate, n byte) {
	c.Text(&g.Queue, &g.Group)
	codec.Int(c, &g.Hold)
	c.Text(&g.Park)
	codec.Int(c, &g.Turn, &g.LastSeq)
	if n == 1 {
		return
	}
	codec.Int(c, &g.Place)
	codec.Uint(c, &g.Served, job.WeightMax)
	if n == 3 {
		c.Mark(&g.Paused)
	}
	c.Refuse(n == 2 && g.Place == 0 && g.Served == 0)
}

// cronEntry is the stored form of an entry. Its template is in the layout of
// jobs, so what a job can hold an entry can.
type cronEntry struct {
	job.CronEntry
	Template []byte
}

func cronEntryOf(e *job.CronEntry) *cronEntry {
	stored := &cronEntry{CronEntry: *e}
	if e.Job != nil {
		stored.Job, stored.Template = nil, appendJob(nil, e.Job)
	}
	return stored
}

// valid reads the template.
func (e *cronEntry) valid() bool {
	if e.Job != nil || e.Missed != nil && !e.Missed.Valid() || e.Place > job.PlaceBack {
		return false
	}
	var err error
	if e.Template != nil {
		e.Job, err = decodeJob(job.ID{}, e.Template, nil)
	}
	return err == nil
}

func lockFields(c *codec.Fields, l *job.Lock) {
	c.Text(&l.Name)
	codec.Int(c, &l.Fence)
	c.Raw(l.Token[:])
	c.Text(&l.By)
	codec.Int(c, &l.At, &l.Span, &l.Until, &l.Least, &l.Forget)
	request := l.Request != job.LockRequest{}
	c.Bits(&l.Given, &request)
	if request {
		c.Raw(l.Request[:])
		c.Refuse(l.Request == job.LockRequest{})
	}
}

func sessionFields(c *codec.Fields, s *job.Session) {
	c.Text(&s.Name)
	codec.Byte(c, &s.State)
	info := s.Info != nil
	c.Bits(&s.Depends, &s.Dropped, &s.Stalled, &info)
	if info {
		b := s.Info
		if c.Piece(&b); c.Reads() {
			s.Info = append([]byte{}, b...)
		}
	}
	c.Text(&s.By.Name, &s.By.From, &s.Why)
	codec.Int(c, &s.Created, &s.Closed, &s.Ended, &s.Next)
	codec.Int(c, &s.Submitted, &s.Done, &s.Failed, &s.Cancelled, &s.Collected, &s.Forgotten)
	codec.Int(c, &s.Tags)
	for i := range codec.List(c, &s.Strikes) {
		k := &s.Strikes[i]
		c.Text(&k.Engine)
		c.Counters(&k.Count)
		codec.Int(c, &k.Last, &k.Until)
		c.Bits(&k.Out)
		for i := range codec.List(c, &k.Tasks) {
			id := &k.Tasks[i]
			c.Raw(id[:])
		}
	}
	c.Refuse(!s.State.Valid())
}

// validSession also makes lists nil that JSON has as empty ones.
func validSession(s *job.Session) bool {
	s.Strikes = filled(s.Strikes)
	for i := range s.Strikes {
		s.Strikes[i].Tasks = filled(s.Strikes[i].Tasks)
	}
	return s.State.Valid()
}

func holderFields(c *codec.Fields, h *job.Holder) {
	c.Text(&h.Name)
	codec.Enum(c, &h.Kind, job.Unary+1)
	properties, machine := h.Properties != nil, h.Engine != nil // it named some, or said that it has none; it is an engine
	c.Bits(&properties, &machine)
	codec.Int(c, &h.Until)
	if properties {
		c.Map(&h.Properties)
	}
	if machine {
		machineFields(c, codec.New(c, &h.Engine))
	}
}

func machineFields(c *codec.Fields, m *job.GridEngine) {
	c.Text(&m.Host)
	codec.Int(c, &m.Slots)
	codec.Int(c, &m.Epoch)
	codec.Int(c, &m.LoggedIn, &m.Heard, &m.Health.Until)
	codec.Enum(c, &m.Health.State, job.HealthStates)
	c.Bits(&m.Polls, &m.Draining, &m.Lost, &m.Awaited)
	for i := range codec.List(c, &m.Health.Row) {
		f := &m.Health.Row[i]
		c.Raw(f.Task[:])
		c.Bits(&f.Elsewhere)
	}
	for i := range codec.List(c, &m.Stopping) {
		hash := &m.Stopping[i]
		c.Uint64(hash)
	}
}

func validHolder(h *job.Holder) bool {
	if m := h.Engine; m != nil {
		m.Health.Row, m.Stopping = filled(m.Health.Row), filled(m.Stopping)
	}
	return h.Kind <= job.Unary
}

// filled is nil for an empty list, which only JSON tells apart.
func filled[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
