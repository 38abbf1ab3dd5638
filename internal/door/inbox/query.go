package inbox

import (
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// Query chooses messages of an inbox.
type Query struct {
	statuses []rule.Status
	group    *string
	types    []string
	from     job.ID
	desc     bool
	limit    int
}

const (
	pageDefault = 50
	pageLargest = 2000
)

// ReadQuery reads the query of a page of messages: status and type, lists
// between commas; group; from; order, asc or desc; limit.
func ReadQuery(raw string) (*Query, error) {
	values, err := strict.Params(raw, "", "status", "type", "group", "from", "order", "limit")
	if err != nil {
		return nil, err
	}
	q := &Query{limit: pageDefault}
	if q.statuses, err = parseStatuses("status", strict.Names(values.Get("status"))); err != nil {
		return nil, err
	}
	q.types = strict.Names(values.Get("type"))
	if values.Has("group") {
		q.group = new(values.Get("group"))
	}
	if text := values.Get("from"); text != "" {
		if q.from, err = job.ParseID(text); err != nil {
			return nil, refuse("from", "from must be the `next` of the page before: "+err.Error())
		}
	}
	switch values.Get("order") {
	case "", "asc":
	case "desc":
		q.desc = true
	default:
		return nil, refuse("order", "order must be asc or desc")
	}
	q.limit, err = strict.Whole(values, "limit", pageDefault, 1, pageLargest)
	return q, err
}

func parseStatuses(field string, list []string) (out []rule.Status, err error) {
	for _, name := range list {
		before := len(out)
		for is, word := range statusNames {
			if word == name {
				out = append(out, rule.Status(is))
			}
		}
		if len(out) == before {
			return nil, refuse(field, field+" must be of "+strings.Join(wire.InboxStatuses[:], ", ")+", not "+strconv.Quote(shorten(name))+spell.Hint(name, wire.InboxStatuses[:]))
		}
	}
	return out, nil
}

// search is the query as the engine takes it.
func (q *Query) search(inbox string) query.Search {
	s := query.Search{Filter: engine.Filter{Queues: []string{inbox}, Statuses: q.statuses, Types: q.types, From: q.from, Desc: q.desc}}
	if q.group != nil {
		s.Where = func(j *job.Job) bool { return j.Group == *q.group }
	}
	return s
}
