package job

import (
	"errors"
	"fmt"
)

// Kind is what went wrong, for programs; the text beside it is for people and
// may change. Doors translate kinds into their own codes, in one table each.
type Kind uint8

// The error kinds.
const (
	Internal      Kind = iota // a broken invariant of ours
	Invalid                   // the request is wrong; repeating it does not help
	NotFound                  // no such job, queue or lease
	Exists                    // the name or key is taken by other content
	WrongState                // the job is in a state that does not allow this
	Superseded                // the token is not live any more
	TokenNeeded               // this queue settles by token only
	OverLimit                 // a quota is used up; later it may work
	Unavailable               // the store cannot commit now; the outcome may be unknown
	Corrupt                   // what is on disk is not what was written
	Unprocessable             // what the request brought was tried, and failed by its own doing
	Forbidden                 // the caller did not prove who it is
)

// Error is a kind, the field it speaks of (may be empty) and a sentence.
type Error struct {
	Kind  Kind
	Field string
	Text  string
	Cause error
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Text + ": " + e.Cause.Error()
	}
	return e.Text
}

func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an error of a kind.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of an error, Internal if it has none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}
