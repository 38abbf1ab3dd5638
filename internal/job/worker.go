package job

import "strings"

// WorkerOf is the name of a holder without the mark of its kind and without
// what only its secret tells: what people are shown. An anonymous stream has a
// number.
func WorkerOf(holder string) string {
	_, name, _ := strings.Cut(holder, "/")
	name, _, _ = strings.Cut(name, "\x00")
	return name
}
