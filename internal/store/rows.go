package store

import (
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// rowsPage is how many rows EachRow reads at a time.
const rowsPage = 1000

// Row returns the row of a type that has a key, nil if there is none.
func Row[R job.Row](v Reader, key string) (R, error) {
	var none R
	row, err := v.Row(none.Table(), key)
	r, _ := row.(R)
	return r, err
}

// Rows returns up to n rows of a type with keys above after, by key.
func Rows[R job.Row](v Reader, after string, n int) ([]R, error) {
	var none R
	rows, err := v.Rows(none.Table(), after, n)
	list := make([]R, len(rows))
	for i, row := range rows {
		list[i] = row.(R)
	}
	return list, err
}

// EachRow calls f for every row of a type with a key above after, by key; f may change it.
func EachRow[R job.Row](v Reader, after string, f func(R) error) error {
	for {
		rows, err := Rows[R](v, after, rowsPage)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.Key()
			if err := f(row); err != nil {
				return err
			}
		}
		if len(rows) < rowsPage {
			return nil
		}
	}
}

// RowsOfQueue returns the rows of a type that a queue and its groups have, by key.
func RowsOfQueue[R job.Row](v Reader, queue string) (list []R, err error) {
	prefix := job.GateKey(queue, "")
	for after := queue; ; after = list[len(list)-1].Key() {
		rows, err := Rows[R](v, after, rowsPage)
		for _, row := range rows {
			if !strings.HasPrefix(row.Key(), prefix) { // they stand together
				return list, nil
			}
			list = append(list, row)
		}
		if len(rows) < rowsPage || err != nil {
			return list, err
		}
	}
}
