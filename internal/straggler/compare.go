package straggler

import "github.com/reprisehq/reprise/internal/job"

// Redundancy is when tasks are copied; it is job.Redundancy by a name that a
// command may use.
type Redundancy = job.Redundancy

// DefaultRedundancy is the strategy median with the guards of the specification.
func DefaultRedundancy() Redundancy { return job.DefaultRedundancy() }

// ParseTime reads a span of time.
func ParseTime(s string) (job.Millis, error) { return job.ParseDuration(s) }

// Comparison is one session without copies, and with strategies, each alone. Its
// JSON is that of "reprise grid simulate --json".
type Comparison struct {
	Scene string     `json:"scene"`
	Runs  []Compared `json:"runs"`

	options []Options
}

// Compared is one of its runs.
type Compared struct {
	Strategy string `json:"strategy"` // none, or its name
	*Report
}

// Compare runs a session without copies, and then with each of the strategies.
func Compare(o Options, r *Redundancy, strategies []string) (*Comparison, error) {
	if _, err := job.ParseRedundancy(strategies); err != nil {
		return nil, err
	}
	c := &Comparison{Scene: o.Scene()}
	for _, name := range append([]string{"none"}, strategies...) {
		if o.Redundancy = nil; name != "none" {
			one := *r
			one.Strategies, _ = job.ParseRedundancy([]string{name})
			o.Redundancy = &one
		}
		report, err := Run(o)
		if err != nil {
			return nil, err
		}
		c.Runs, c.options = append(c.Runs, Compared{name, report}), append(c.options, o)
	}
	return c, nil
}
