package job

import "strings"

// Extras are what few jobs carry beside their work. A value is never changed
// in place: jobs share it.
type Extras struct {
	Labels      []Label // sorted by key, keys differ
	Traceparent string  // W3C trace context of whoever asked for the job; "" = none
	Unique      *Unique // nil = there may be any number of it
	Batch       *Batch  // nil = it stays a job of its own; never together with Unique
	Narrow      bool    // who gave the key of one of these may not reach all queues: see rule.Reaches
	NoRetention bool    // its retention was given, with no member; it is told so
	Progress    *RunProgress
	Budgets     []BudgetUse // keys differ
	Result      *Result     // of a done job
	Needs       *Needs      // tasks that must be over before; nil = none
	Attempts    []Attempt   // of a task: those that are over, see History
	Affinity    *Affinity   // to engines, of a task; nil = none
}

// orNil is nil where there is nothing to carry. It looks at every field, and
// without reflection: each settle asks.
func (x Extras) orNil() *Extras {
	if x.Labels == nil && x.Traceparent == "" && x.Unique == nil && x.Batch == nil && x.Progress == nil &&
		x.Budgets == nil && x.Result == nil && x.Needs == nil && x.Attempts == nil && x.Affinity == nil && !x.Narrow && !x.NoRetention {
		return nil
	}
	kept := x // x itself would be allocated for nothing, too
	return &kept
}

// RunProgress is what the worker of a job told of its run. Checkpoint outlives the
// attempt: the next one begins with it.
type RunProgress struct {
	Fraction   float64 // done of the whole, 0 to 1; FractionUnset = not said
	Text       string
	At         Millis // of the latest word
	Checkpoint []byte // JSON as given; nil = none
}

// FractionUnset is the fraction of a progress that tells none.
const FractionUnset = -1

// Bounds of what a worker may tell, in bytes.
const (
	ProgressTextMax = 1 << 10
	CheckpointMax   = 64 << 10
)

// Over returns what is known when p was said after old: what p leaves out stays.
func (p RunProgress) Over(old *RunProgress) *RunProgress {
	if old == nil {
		return &p
	}
	if p.Fraction == FractionUnset {
		p.Fraction = old.Fraction
	}
	if p.Text == "" {
		p.Text = old.Text
	}
	if p.Checkpoint == nil {
		p.Checkpoint = old.Checkpoint
	}
	return &p
}

// WithProgress returns the job's extras with this progress.
func (j *Job) WithProgress(p *RunProgress) *Extras {
	x := Extras{}
	if j.Extras != nil {
		x = *j.Extras
	}
	x.Progress = p
	return x.orNil()
}

// WithRetention returns the extras with a retention that, if it is empty, is none.
func (j *Job) WithRetention() *Extras {
	x := *j.Extras
	x.NoRetention = false
	return x.orNil()
}

// Label is a word of the producer's own about a job. The server keeps it, and
// hands it on.
type Label struct{ Key, Value string }

// Label is the value of a label of the job, "" if it has none of that key.
func (j *Job) Label(key string) string {
	if j.Extras != nil {
		for _, l := range j.Extras.Labels {
			if l.Key == key {
				return l.Value
			}
		}
	}
	return ""
}

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

// CarriedTraceparent reads the header of a request as the recommendation says:
// of a later version, what version 00 knows of it. What is not valid is "".
func CarriedTraceparent(header string) string {
	const size = len("00-") + 32 + 1 + 16 + 1 + 2
	if len(header) > size && header[size] == '-' && header[:2] != "00" {
		header = header[:size]
	}
	if len(header) != size || !isHex(header[:2], 2) || header[:2] == "ff" {
		return ""
	}
	if header[:2] != "00" {
		header = "00" + header[2:]
	}
	if !IsTraceparent(header) {
		return ""
	}
	return header
}

// Sampled reports whether the job carries a trace context whose caller records
// what it does.
func (j *Job) Sampled() bool {
	if j.Extras == nil || j.Extras.Traceparent == "" {
		return false
	}
	t := j.Extras.Traceparent
	return strings.IndexByte("13579bdf", t[len(t)-1]) >= 0 // the lowest flag
}

func isID(s string, n int) bool { return isHex(s, n) && strings.Trim(s, "0") != "" }

func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }
