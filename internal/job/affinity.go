package job

// Affinity ties a task to the engines that ran tasks of its session with the same
// tag (reference gridserver.md section 6). A value is never changed in place.
type Affinity struct {
	Tag string
	// For are the holders that alone may take the task before it was ever given
	// out, at most AffinityEngines; none = anyone may. It is the next of its tag,
	// and the wait for them is not over (AffinityTag.Until).
	For []string
}

// Affinity returns what ties the job to engines, nil if nothing does.
func (j *Job) Affinity() *Affinity {
	if j == nil || j.Extras == nil {
		return nil
	}
	return j.Extras.Affinity
}

// WithAffinity returns the job's extras with this affinity.
func (j *Job) WithAffinity(a *Affinity) *Extras {
	x := Extras{}
	if j.Extras != nil {
		x = *j.Extras
	}
	x.Affinity = a
	return x.orNil()
}

// Bounds of task affinity.
const (
	AffinityEngines = 4      // that ran a task of the tag, the latest
	AffinityTagsMax = 10_000 // tags of one session
)

// AffinityTag is what a session knows of a tag: it is a row.
type AffinityTag struct {
	Session, Tag string
	Engines      []string // holders that ran a task of the tag, the latest first
	Head         ID       // the task that is next, which stands in line; zero = none
	Until        Millis   // on the steady clock: then anyone may take Head; 0 = there is none
}

// Table implements Row.
func (t *AffinityTag) Table() Table { return Affinities }

// Key implements Row.
func (t *AffinityTag) Key() string { return GateKey(t.Session, t.Tag) }

// Due implements Row: the end of the wait.
func (t *AffinityTag) Due() Millis { return t.Until }
