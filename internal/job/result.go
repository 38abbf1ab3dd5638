package job

// ResultInline bounds the results that are part of their job, in bytes: one key
// less on the disk for each.
const ResultInline = 256

// Result is what a done job made (core.md section 7), and lives as long as the job
// does: small, as a part of it; larger, as a payload of its own.
type Result struct {
	Ref   ID // of the payload; zero of a small one
	Size  uint32
	Bytes []byte // of a small one, which is never nil, and never changed; nil of a larger one
}

// InlineResult is a small result, with a copy of what the job made.
func InlineResult(body []byte) *Result {
	return &Result{Size: uint32(len(body)), Bytes: append([]byte{}, body...)}
}

// Result returns what the job made, nil if it made nothing.
func (j *Job) Result() *Result {
	if j == nil || j.Extras == nil {
		return nil
	}
	return j.Extras.Result
}

// ResultRef names the payload that the job's result is, zero if none is.
func (j *Job) ResultRef() ID {
	if r := j.Result(); r != nil {
		return r.Ref
	}
	return ID{}
}
