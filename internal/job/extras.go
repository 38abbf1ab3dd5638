package job

import "strings"

// Extras are what few jobs carry beside their work. A value is never changed
// in place: jobs share it.
type Extras struct {
	Labels      []Label // sorted by key, keys differ
	Traceparent string  // W3C trace context of whoever asked for the job; "" = none
	Unique      *Unique // nil = there may be any number of it
	Batch       *Batch  // nil = it stays a job of its own; never together with Unique
}

// Label is a word of the producer's own about a job. The server keeps it, and
// hands it on.
type Label struct{ Key, Value string }

// Bounds of the labels of one job.
const (
	LabelsMax     = 32
	LabelBytesMax = 4 << 10 // keys and values together
)

// IsTraceparent reports whether a text is a trace context of version 00, the
// header of the W3C recommendation: ids are not all zeros.
func IsTraceparent(s string) bool {
	part := strings.Split(s, "-")
	return len(part) == 4 && part[0] == "00" && isID(part[1], 32) && isID(part[2], 16) && isHex(part[3], 2)
}

func isID(s string, n int) bool { return isHex(s, n) && strings.Trim(s, "0") != "" }

func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }
