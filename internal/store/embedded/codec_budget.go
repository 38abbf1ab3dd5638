package embedded

import (
	"encoding/binary"

	"github.com/reprisehq/reprise/internal/job"
)

func appendBudgets(b []byte, list []job.BudgetUse) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, u := range list {
		b = binary.AppendUvarint(appendString(b, u.Key), uint64(u.Cost))
	}
	return b
}

func (r *reader) budgets() (list []job.BudgetUse) {
	for n := r.count(); n > 0 && !r.bad; n-- {
		u := job.BudgetUse{Key: r.string(), Cost: int64(r.upTo(job.BudgetUnits))}
		r.bad = r.bad || u.Key == "" || u.Cost < 1
		list = append(list, u)
	}
	r.bad = r.bad || len(list) == 0
	return list
}
