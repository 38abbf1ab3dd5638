// Package spell finds which known name was meant by one that is not known:
// settings, flags, commands, query parameters and words of all doors. It also
// knows what the settings of the originals are called here (originals.txt).
package spell

import "strings"

// Meant is the known name that s was probably meant to be, "" if none is close:
// the same but for case and separators, few letters off, its beginning, or one
// of which the other is a part.
func Meant(s string, known []string) string {
	tidy := Fold(s)
	best, least := "", 1+max(min(2, len(tidy)/2), min(3, (len(tidy)+1)/3))
	for _, name := range known {
		if d := distance(tidy, Fold(name)); d < least {
			best, least = name, d
		}
	}
	if best != "" {
		return best
	}
	const begins, part = 3, 4
	for _, name := range known {
		other := Fold(name)
		switch {
		case len(tidy) >= begins && strings.HasPrefix(other, tidy):
			return name
		case best != "", min(len(tidy), len(other)) < part, max(len(tidy), len(other)) > 2*min(len(tidy), len(other)):
		case strings.Contains(other, tidy) || strings.Contains(tidy, other):
			best = name
		}
	}
	return best
}

// Hint is Meant as the end of a message, "" if no name is close.
func Hint(s string, known []string) string {
	if name := Meant(s, known); name != "" {
		return "; did you mean " + name + "?"
	}
	return ""
}

// Fold takes case and separators away, so that taskMaxTime, task-max-time,
// TASK_MAX_TIME and "Task Max Time" are one name.
func Fold(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return r
	}, s))
}

// distance is how many letters must be put in, taken out, replaced or swapped
// with their neighbour to turn a into b.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
