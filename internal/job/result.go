package job

// Result is where the result of a done job is kept: a payload of its own (core.md
// section 7), which lives as long as the job does.
type Result struct {
	Ref  ID
	Size uint32
}

// Result returns where the job's result is kept, nil if it has none.
func (j *Job) Result() *Result {
	if j == nil || j.Extras == nil {
		return nil
	}
	return j.Extras.Result
}

// WithResult returns the job's extras with this result.
func (j *Job) WithResult(r *Result) *Extras {
	x := Extras{}
	if j.Extras != nil {
		x = *j.Extras
	}
	x.Result = r
	return x.orNil()
}
