package jobs

import (
	"bytes"
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/jq"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// Pages hold at most PageMax rows; a scan loads as many at a time.
const (
	PageMax     = 2000
	pageDefault = 50
)

// Query is what the calls over many jobs, and GET /jobs/{id}/errors, ask for.
type Query struct {
	path   string
	tail   string // the filters as they stand in links
	from   string // a page goes on behind it
	desc   bool
	limit  int
	filter engine.Filter
	ranges []span
	bound  []string // to one of these budgets; nil = to any or none
	waits  []string // for one of these; nil = for any or nothing
	whys   []job.Reason
	groups []string    // in one of these; nil = in any or none
	labels []job.Label // with one value of each key; nil = with any or none
	sieve  *jq.Program // over payloads; nil = none
}

// span is a range over a number of a job, both ends included.
type span struct {
	of     func(*job.Job) uint64
	lo, hi uint64
}

// The parameters of the calls, in the order in which links name them.
var (
	pageParams  = []string{"from", "order", "limit"}
	countParams = []string{"status", "queue", "type", "id", "priority", "ready_at", "attempts", "filter", "budgets.key", "reason", "group", "label"}
	waitParams  = slices.Concat(countParams, []string{"wait"})
	listParams  = slices.Concat(pageParams, waitParams)
	numbers     = map[string]func(*job.Job) uint64{
		"priority": func(j *job.Job) uint64 { return uint64(j.Priority) },
		"ready_at": func(j *job.Job) uint64 { return uint64(j.ReadyAt) },
		"attempts": func(j *job.Job) uint64 { return uint64(j.Attempts) },
	}
)

// ListQuery reads the query of GET /jobs.
func ListQuery(raw string) (*Query, error) {
	q, err := readQuery("/jobs", raw, listParams)
	if err == nil && q.from != "" {
		if q.filter.From, err = queryID(q.from); err != nil {
			err = refuse("from", "from must be a job ID: "+err.Error())
		}
		if q.desc && q.filter.From.IsZero() { // nothing stands before the first id, which a store takes for none
			q.filter.IDs = []job.ID{lastID}
		}
	}
	return q, err
}

// lastID is the largest there can be; no job has it.
var lastID = job.ID(bytes.Repeat([]byte{0xff}, len(job.ID{})))

// queryID reads an id. One that has its form and is above the largest stands
// for that: the form is all that Zizq asks for.
func queryID(text string) (job.ID, error) {
	id, err := job.ParseID(text)
	if err != nil && len(text) == job.IDChars && strings.Trim(text, "0123456789abcdefghijklmnopqrstuvwxyz") == "" {
		return lastID, nil
	}
	return id, err
}

// CountQuery reads the query of GET /jobs/count.
func CountQuery(raw string) (*Query, error) { return readQuery("/jobs/count", raw, waitParams) }

// ErrorsQuery reads the query of GET /jobs/{id}/errors.
func ErrorsQuery(id job.ID, raw string) (*Query, error) {
	q, err := readQuery("/jobs/"+id.String()+"/errors", raw, pageParams)
	if err == nil && q.from != "" {
		if _, bad := strconv.ParseUint(q.from, 10, 32); bad != nil {
			err = refuse("from", "from must be the number of an attempt, or 0")
		}
	}
	return q, err
}

// QueueNames reads a comma list of queues as a sorted set. A name that no queue
// can have is refused: a worker would wait for ever, and a list would look empty.
// Zizq asks for the same rule of a queue's name (zizq.md 1.4) and says of no query
// that it may be broken there; a name that no queue has yet is no error.
func QueueNames(value string) ([]string, error) {
	list := strict.Names(value)
	return list, queueNames("queue", list)
}

func queueNames(field string, list []string) error {
	for _, name := range list {
		if err := CheckName(field, name); err != nil {
			return err
		}
	}
	return nil
}

func readQuery(path, raw string, known []string) (*Query, error) {
	q := &Query{path: path, limit: pageDefault}
	values, err := strict.Params(raw, "", known...)
	for _, name := range known {
		if value := values.Get(name); value != "" && err == nil {
			err = q.set(name, value)
		}
	}
	q.filter.Desc = q.desc
	return q, err
}

func (q *Query) set(name, value string) error {
	switch name {
	case "from":
		q.from = value
	case "order":
		if q.desc = value == "desc"; !q.desc && value != "asc" {
			return refuse(name, "order must be asc or desc")
		}
	case "limit":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > PageMax {
			return refuse(name, "limit must be between 1 and "+strconv.Itoa(PageMax)) // Zizq's words
		}
		q.limit = n
	case "filter":
		q.tail += "&filter=" + url.QueryEscape(value)
		return q.sift(value)
	case "priority", "ready_at", "attempts":
		q.tail += "&" + name + "=" + url.QueryEscape(value)
		return q.between(name, value)
	default:
		return q.among(name, strict.Names(value))
	}
	return nil
}

// among filters by a set of values.
func (q *Query) among(name string, list []string) error {
	for i, part := range list {
		q.tail += [...]string{"&" + name + "=", ","}[min(i, 1)] + url.QueryEscape(part)
		switch name {
		case "queue":
			if q.filter.Queues = list; i == 0 {
				if err := queueNames("queue", list); err != nil {
					return err
				}
			}
		case "type":
			q.filter.Types = list
		case "budgets.key":
			q.bound = list
		case "reason":
			why, err := reason(part)
			if err != nil {
				return err
			}
			q.whys = append(q.whys, why)
			q.filter.Statuses = deadOf(q.whys)
		case "group":
			q.groups = list
		case "label":
			key, value, ok := strings.Cut(part, "=")
			if !ok || key == "" {
				return refuse(name, "label must be name=value, several with commas between; it has "+strconv.Quote(strict.Shorten(part, 64)))
			}
			q.labels = append(q.labels, job.Label{Key: key, Value: value})
		case "wait":
			q.waits = list
			if !slices.Contains(wire.Waits, part) {
				return refuse(name, "wait must be among "+strings.Join(wire.Waits, ", ")+"; it has "+strconv.Quote(strict.Shorten(part, 64))+spell.Hint(part, wire.Waits))
			}
		case "id":
			id, err := queryID(part)
			if err != nil {
				return refuse(name, "invalid job ID: "+strconv.Quote(strict.Shorten(part, 64)))
			}
			q.filter.IDs = append(q.filter.IDs, id)
		case "status":
			at := slices.Index(states[:], part)
			if at < 0 {
				return refuse(name, "status must be among "+strings.Join(states[1:], ", ")+"; it has "+strconv.Quote(strict.Shorten(part, 64))+spell.Hint(part, states[1:]))
			}
			q.filter.States = append(q.filter.States, job.State(at))
		}
	}
	return nil
}

// deadOf are the statuses that jobs which are dead for one of these reasons can have.
func deadOf(whys []job.Reason) (list []rule.Status) {
	cancelled := slices.Contains(whys, job.ReasonCancelled)
	if cancelled {
		list = append(list, rule.StatusCancelled)
	}
	if !cancelled || len(whys) > 1 {
		list = append(list, rule.StatusDead, rule.StatusBlocking)
	}
	return list
}

// between filters by a range: N, A..B, ..B, A.. or .. for any.
func (q *Query) between(name, value string) (err error) {
	s := span{of: numbers[name]}
	s.lo, s.hi, err = rangeOf(name, value)
	q.ranges = append(q.ranges, s)
	return err
}

// rangeOf reads a range, both ends included.
func rangeOf(name, value string) (lo, hi uint64, err error) {
	ends := [2]string{value, value}
	if from, to, isRange := strings.Cut(value, ".."); isRange {
		ends = [2]string{from, to}
	}
	hi = 1<<64 - 1
	for i, into := range []*uint64{&lo, &hi} {
		if ends[i] == "" {
			continue
		}
		if *into, err = strconv.ParseUint(ends[i], 10, 64); err != nil {
			return 0, 0, refuse(name, name+" must be a whole number or a range such as 1..5, 1.. or ..5")
		}
	}
	if lo > hi {
		return 0, 0, refuse(name, name+": range lower bound exceeds upper bound")
	}
	return lo, hi, nil
}

// AppendList appends the answer to GET /jobs with what Find returned.
func (q *Query) AppendList(b []byte, f Found[query.Listed]) []byte {
	return appendPage(b, `{"jobs":[`, q, f, AppendListed, func(l query.Listed) string { return l.Job.ID.String() })
}

// Failures returns the rows of a page of errors.
func (q *Query) Failures(ctx context.Context, e *part.Engine, id job.ID, room engine.Room) (f Found[job.Failure], err error) {
	f.Rows, err = e.Failures(ctx, id, q.attempt(), q.filter.Desc, q.limit+1)
	var bytes int
	f.Rows, f.More, bytes = query.Fits(f.Rows, q.limit, func(f job.Failure) int { return len(f.Message) + len(f.Backtrace) })
	return f, cmp.Or(err, room(bytes))
}

// AppendErrors appends the answer to GET /jobs/{id}/errors.
func (q *Query) AppendErrors(b []byte, f Found[job.Failure]) []byte {
	return appendPage(b, `{"errors":[`, q, f, AppendFailure, func(f job.Failure) string { return strconv.Itoa(int(f.Number)) })
}

// attempt is the cursor as a number, 0 if it is none. Before 0 comes as little
// as before 1.
func (q *Query) attempt() uint32 {
	n, err := strconv.ParseUint(q.from, 10, 32)
	switch {
	case err != nil:
		return 0
	case q.desc:
		return max(1, uint32(n))
	}
	return uint32(n)
}

// appendPage appends rows and the links: next where others follow, prev where the page goes on behind another. A page
// that prev names is in the reverse order, nearest first, as Zizq's are.
func appendPage[T any](b []byte, open string, q *Query, f Found[T], row func([]byte, T) []byte, key func(T) string) []byte {
	rows := f.Rows
	b = append(b, open...)
	for _, r := range rows {
		b = row(comma(b), r)
	}
	b = quote(b, `],"pages":{"self":`, q.link(q.from, q.desc))
	next, prev := "", ""
	if f.More {
		if next = f.behind; next == "" {
			next = key(rows[len(rows)-1])
		}
		next = q.link(next, q.desc)
	}
	if len(rows) > 0 && q.from != "" {
		prev = q.link(key(rows[0]), !q.desc)
	}
	b = orNullString(b, `,"next":`, next)
	return append(orNullString(b, `,"prev":`, prev), `}}`...)
}

func orNullString(b []byte, key, s string) []byte {
	if s == "" {
		return append(append(b, key...), `null`...)
	}
	return quote(b, key, s)
}

// link writes a page's address; every value is escaped.
func (q *Query) link(from string, desc bool) string {
	s := q.path + "?"
	if from != "" {
		s += "from=" + url.QueryEscape(from) + "&"
	}
	order := "asc"
	if desc {
		order = "desc"
	}
	return s + "order=" + order + "&limit=" + strconv.Itoa(q.limit) + q.tail
}
