package job

// OnDepFail is what becomes of a task when one that it depends on fails.
type OnDepFail uint8

// The choices; DepFail is the default.
const (
	DepFail OnDepFail = iota // it fails, too, and does not run
	DepRun                   // it runs: it wanted the other one to be over, not to succeed
	onDepFailEnd
)

var onDepFailNames = [onDepFailEnd]string{"fail", "run"}

func (o OnDepFail) String() string { return nameOf(onDepFailNames[:], uint8(o)) }

// ParseOnDepFail reads the name of a choice; none is the default. The field of
// its error is on_dep_fail.
func ParseOnDepFail(s string) (OnDepFail, error) {
	at, ok := indexOf(onDepFailNames[:], s)
	if !ok && s != "" {
		return 0, &Error{Kind: Invalid, Field: "on_dep_fail", Text: "on_dep_fail must be fail or run"}
	}
	return OnDepFail(at), nil
}

// Needs are the tasks that a task depends on. A value is never changed in place.
type Needs struct {
	Tasks  []ID
	OnFail OnDepFail
}

// Needs returns what the job depends on, nil if it does on nothing.
func (j *Job) Needs() *Needs {
	if j == nil || j.Extras == nil {
		return nil
	}
	return j.Extras.Needs
}

// DependenciesMax is the most tasks that one task may depend on.
const DependenciesMax = 64

// DependencyFailed is the error type of a task that fails because another did.
const DependencyFailed = "DependencyFailed"
