// Package policy shows what a retry policy will do before it is used
// (spec/retry.md section 1, "Preview before use"). It reads a policy from
// named values, such as flags and query parameters, and lays out its waits as
// rows and in words. What the waits are, package rule decides.
package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// How many rows a preview has.
const (
	RowsDefault = 25 // where the policy has no limit
	RowsMax     = 1000
)

// Preview is what a policy does to a job whose attempts all fail at once. Its
// JSON is the answer of "reprise policy preview --json" and of
// GET /policies/preview; all times are in milliseconds.
type Preview struct {
	Limit *int64 `json:"limit"` // nil = unlimited
	Rows  []Row  `json:"rows"`  // never nil

	Retry job.Retry `json:"-"` // the policy, complete

	aged bool // max_age lets no retry happen after the last row
}

// Row is one retry.
type Row struct {
	Retry    int        `json:"retry"` // 1 for the first
	Min      job.Millis `json:"min_ms"`
	Mean     job.Millis `json:"mean_ms"`
	Max      job.Millis `json:"max_ms"`
	TotalMin job.Millis `json:"total_min_ms"` // this wait and all before it
	TotalMax job.Millis `json:"total_max_ms"`
}

// Of previews a policy; what it leaves open is the default's. There is a row
// for each retry up to the limit, or RowsDefault if it is unlimited; rows above
// 0 asks for another number, which the limit still bounds, and there are never
// more than RowsMax. A retry that max_age cannot allow has no row.
func Of(r job.Retry, rows int) Preview {
	r = r.Over(job.DefaultRetry())
	p := Preview{Retry: r, Rows: []Row{}}
	limit, bounded := r.LimitValue()
	if bounded {
		p.Limit = &limit
	}
	switch {
	case rows <= 0 && bounded:
		rows = RowsMax
	case rows <= 0:
		rows = RowsDefault
	}
	rows = min(rows, RowsMax)
	var least, most job.Millis
	for w := range rule.Waits(r.Curve) {
		least, most = least.Add(w.Min), most.Add(w.Max)
		if len(p.Rows) == rows || rule.Spent(&r, int64(len(p.Rows)+1)) {
			break
		}
		if p.aged = rule.TooOld(&r, least); p.aged {
			break
		}
		p.Rows = append(p.Rows, Row{len(p.Rows) + 1, w.Min, w.Mean, w.Max, least, most})
	}
	return p
}

// Line writes on one line what a policy says about when to retry, as a
// configuration file could hold it. What it leaves open is the default's.
func Line(r job.Retry) string {
	r = r.Over(job.DefaultRetry())
	line := "limit: " + r.Limit.String()
	if r.MaxAge > 0 && r.MaxAge < job.MaxMillis {
		line += ", max_age: " + r.MaxAge.String()
	}
	curve, err := r.Curve.MarshalJSON()
	if err != nil { // a curve with a number that is not finite, which no reader passes
		return line
	}
	return line + ", curve: " + strings.NewReplacer(`"`, "", ":", ": ", ",", ", ").Replace(string(curve))
}

// Ending says in a sentence or two where the rows lead.
func (p Preview) Ending() string {
	n := len(p.Rows)
	switch {
	case p.Limit != nil && *p.Limit == 0:
		return "The first failure is final: the job is dead at once."
	case n == 0:
		return "The first failure is final: the first retry would be later than max_age " + p.Retry.MaxAge.String() + " allows."
	}
	last := p.Rows[n-1]
	s := "1 retry"
	if n > 1 {
		s = strconv.Itoa(n) + " retries"
	}
	switch {
	case p.aged:
		s = fmt.Sprintf("At most %s: a further one would come later than max_age %s allows, and the job is dead.", s, p.Retry.MaxAge)
	case p.Limit == nil:
		s = fmt.Sprintf("The policy has no limit; these are its first %s, over %s.", s, between(last.TotalMin, last.TotalMax))
	case int64(n) < *p.Limit:
		s = fmt.Sprintf("These are the first %s of %d, over %s.", s, *p.Limit, between(last.TotalMin, last.TotalMax))
	default:
		s = fmt.Sprintf("The job is dead when its %s have failed too: %s after the first failure.", s, between(last.TotalMin, last.TotalMax))
	}
	if sure := p.sure(); sure < n {
		s += fmt.Sprintf(" Long waits may end it earlier: only the first %d cannot pass max_age %s.", sure, p.Retry.MaxAge)
	}
	return s
}

// sure is how many retries happen however long each wait is.
func (p Preview) sure() int {
	for i, row := range p.Rows {
		if rule.TooOld(&p.Retry, row.TotalMax) {
			return i
		}
	}
	return len(p.Rows)
}

func between(least, most job.Millis) string {
	if least == most {
		return least.String()
	}
	return least.String() + " to " + most.String()
}
