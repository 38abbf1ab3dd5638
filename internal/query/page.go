package query

import "github.com/reprisehq/reprise/internal/engine"

// Fits returns the first rows of a page, at most n, and whether others follow.
func Fits[T any](rows []T, n int, size func(T) int) (page []T, more bool, bytes int) {
	for i, row := range rows {
		size := size(row)
		if i == n || i > 0 && bytes+size > engine.PageBytes {
			return rows[:i], true, bytes
		}
		bytes += size
	}
	return rows, false, bytes
}
