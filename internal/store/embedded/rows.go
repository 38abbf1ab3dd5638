package embedded

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// rows are the tables kept in memory, all but receipts.
type rows struct {
	tables [job.Tables]map[string]job.Row
	due    [job.Tables]sorted[rowDue]
	// receiptDue is the soonest due time of a receipt; 0 = none.
	receiptDue job.Millis
}

// rowDue is a timer of a row. The key is a string, but rows with timers are few.
type rowDue struct {
	at  job.Millis
	key string
}

// Before implements before: soonest first.
func (r rowDue) Before(s rowDue) bool { return r.at < s.at || r.at == s.at && r.key < s.key }

func newRows() *rows {
	r := &rows{}
	for t := range r.tables {
		r.tables[t] = map[string]job.Row{}
	}
	return r
}

func (r *rows) put(row job.Row) {
	t, key := row.Table(), row.Key()
	r.forget(t, key)
	r.tables[t][key] = row
	if at := row.Due(); at != 0 {
		r.due[t].insert(rowDue{at, key})
	}
}

func (r *rows) forget(t job.Table, key string) {
	if old := r.tables[t][key]; old != nil {
		if at := old.Due(); at != 0 {
			r.due[t].remove(rowDue{at, key})
		}
		delete(r.tables[t], key)
	}
}

func (r *rows) page(t job.Table, after string, n int) []job.Row {
	var out []job.Row
	for key, row := range r.tables[t] {
		if key > after {
			out = append(out, row)
		}
	}
	slices.SortFunc(out, func(a, b job.Row) int { return cmp.Compare(a.Key(), b.Key()) })
	return out[:min(n, len(out))]
}

func (r *rows) dueRows(t job.Table, until job.Millis, n int) []job.Row {
	var out []job.Row
	for cur := r.due[t].start(); len(out) < n; cur.next() {
		d, ok := cur.item()
		if !ok || d.at > until {
			break
		}
		out = append(out, r.tables[t][d.key])
	}
	return out
}
