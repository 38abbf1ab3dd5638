package pipeline

import (
	"maps"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/filter"
	"github.com/reprisehq/reprise/internal/record"
)

// Filter changes records of the tags that it matches.
type Filter struct {
	Name string
	Match
	Does  filter.Filter
	Count FilterCount
}

// FilterCount is what a filter did since the start.
type FilterCount struct{ Records, Dropped, Added atomic.Int64 }

// stream is records on their way through the filters.
type stream struct {
	connect.Records
	not map[*Filter]bool // those that put them in again; nil = none
}

// filtered is what the filters make of records: nothing, or records of one tag or several.
func (t *intake) filtered(r connect.Records) (out []connect.Records) {
	if len(r.Events) == 0 {
		return nil
	}
	for todo := []stream{{Records: r}}; len(todo) > 0; todo = todo[1:] {
		s, again := t.through(todo[0])
		if len(s.Events) > 0 {
			out = append(out, s)
		}
		todo = append(todo, again...)
	}
	return out
}

// through lets all filters look at records, one filter after the other. again is what comes
// in anew under other tags.
func (t *intake) through(s stream) (out connect.Records, again []stream) {
	for _, f := range t.Filters {
		if s.not[f] || !f.Fits(s.Tag) {
			continue
		}
		made := &filter.Output{}
		events, n, err := filter.Run(f.Does, t.now(), s.Tag, s.Events, made)
		f.Count.Records.Add(int64(n.Records))
		f.Count.Dropped.Add(int64(n.Dropped))
		f.Count.Added.Add(int64(n.Added))
		if err == nil {
			err = made.Trouble
		}
		if err != nil {
			t.trouble(f, s.Tag, err)
		}
		s.Events = events
		again = append(again, t.again(f, s.not, made.Again)...)
		if len(s.Events) == 0 {
			break
		}
	}
	return s.Records, again
}

// again gathers what a filter puts in under other tags.
func (t *intake) again(f *Filter, not map[*Filter]bool, list []filter.Tagged) (out []stream) {
	if len(list) == 0 {
		return nil
	}
	not = maps.Clone(not)
	if not == nil {
		not = map[*Filter]bool{}
	}
	not[f] = true
	at := map[string]int{} // of a tag in out
	for _, e := range list {
		i, is := at[e.Tag]
		if !is {
			i = len(out)
			at[e.Tag] = i
			out = append(out, stream{connect.Records{Tag: e.Tag}, not})
		}
		out[i].Events = append(out[i].Events, e.Event...)
	}
	return out
}

// trouble tells once of a filter that it could not deal with a record, which went on as it was.
func (t *intake) trouble(f *Filter, tag string, err error) {
	if _, told := t.told.LoadOrStore(f.Name, true); !told {
		t.log.Warn("a filter cannot deal with a record, which goes on as it is; this is said once", "filter", f.Name, "tag", tag, "error", err)
	}
}

// countOf is how many records there are; what is broken is not counted.
func countOf(events []byte) int64 {
	n, _, _ := record.Count(events)
	return int64(n)
}
