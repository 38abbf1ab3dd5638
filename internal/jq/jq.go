// Package jq evaluates jq expressions over payloads: filters that choose jobs,
// and folds that merge two payloads into one. It owns what keeps a foreign
// expression harmless: no environment, no modules, no input functions, a time
// limit, and bounds on what goes in, what comes out and what it needs meanwhile
// (core.md section 9).
//
// An expression may take as long as its limit, so it never runs where others
// wait for it: not in the committer and not under a view of the store.
//
// Numbers keep their digits: an integer of any size and the text of a decimal
// number are what they were in the payload until an expression calculates with
// them; integers are calculated exactly.
package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"
)

// SourceMax is the longest expression, in bytes.
const SourceMax = 16 << 10

// ErrBound is what an evaluation ends with that went over one of its limits:
// the answer is then not known. The text of an error that wraps it says which.
var ErrBound = errors.New("over a limit")

// Limits bound one evaluation.
type Limits struct {
	Time  time.Duration
	Bytes int // of an input or a variable as JSON, and of an output
}

// Program is a compiled expression. It may be used by several goroutines at
// the same time.
type Program struct {
	code *gojq.Code
	vars int
}

// Compile reads an expression that may use the variables with these names,
// each with its dollar sign, such as "$existing". The error says what is wrong
// with the expression.
func Compile(source string, vars ...string) (*Program, error) {
	if len(source) > SourceMax {
		return nil, errors.New("the expression is longer than " + strconv.Itoa(SourceMax) + " bytes")
	}
	query, err := gojq.Parse(source)
	if err != nil {
		return nil, err
	}
	bound(query)
	code, err := gojq.Compile(query, append(guards(), gojq.WithVariables(vars))...)
	if err != nil { // it names functions as they were renamed
		return nil, errors.New(strings.NewReplacer("__own_", "_", "__", "").Replace(err.Error()))
	}
	return &Program{code, len(vars)}, nil
}

// Run evaluates the expression and gives every output to each, until that has
// enough. input is JSON, nil for null, and so is each variable, in the order of
// Compile.
//
// An error of the expression itself ends the run as any other error. One that
// wraps ErrBound means that a limit was reached; ctx.Err() that the caller gave
// up.
func (p *Program) Run(ctx context.Context, l Limits, input []byte, each func(output any) (more bool), vars ...[]byte) (err error) {
	values := make([]any, 1+p.vars)
	for i := range values {
		text := input
		if i > 0 {
			text = vars[i-1]
		}
		if values[i], err = decode(text, l.Bytes); err != nil {
			return err
		}
	}
	timed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := watch{limit: l.Time, end: cancel}
	defer w.begin()()
	defer func() { // a hostile expression may find a way to make the interpreter panic
		if why := recover(); why != nil {
			err = fmt.Errorf("the expression cannot be evaluated: %v", why)
		}
	}()
	for outputs := p.code.RunWithContext(timed, values[0], values[1:]...); ; {
		v, ok := outputs.Next()
		if timed.Err() != nil {
			if err := ctx.Err(); err != nil {
				return err
			}
			return context.Cause(timed)
		}
		if !ok {
			return nil
		}
		if err, bad := v.(error); bad {
			if halt, ok := errors.AsType[*gojq.HaltError](err); ok {
				return halted(halt)
			}
			return err
		}
		if !each(v) {
			return nil
		}
	}
}

func halted(h *gojq.HaltError) error {
	if h.Value() == nil {
		return nil // no more outputs
	}
	return errors.New("halt_error") // its own text may be as long as the value is
}

// Keeps reports whether a filter keeps a payload: whether any of its outputs
// is truthy. No output and an error of the expression do not keep it, and
// neither does a payload that is larger than the limit. An error is returned
// only when the answer is not known: one that wraps ErrBound, or ctx.Err().
func (p *Program) Keeps(ctx context.Context, l Limits, payload []byte) (keeps bool, err error) {
	if len(payload) > l.Bytes {
		return false, nil
	}
	err = p.Run(ctx, l, payload, func(v any) bool {
		keeps = Truthy(v)
		return !keeps
	})
	if err == nil || errors.Is(err, ErrBound) || ctx.Err() != nil {
		return keeps, err
	}
	return false, nil
}

// Truthy reports whether an output counts as true: all do but false and null.
func Truthy(output any) bool { return output != nil && output != false }

// Encode writes an output as JSON, at most most bytes of it.
func Encode(output any, most int) ([]byte, error) {
	if weigh(output, most, nestingMax) >= 0 {
		if text, err := gojq.Marshal(output); err != nil || len(text) <= most {
			return text, err
		}
	}
	return nil, fmt.Errorf("the result is larger than %d bytes (%w)", most, ErrBound)
}

func decode(text []byte, most int) (v any, err error) {
	if text == nil {
		return nil, nil
	}
	if len(text) > most {
		return nil, fmt.Errorf("the payload is larger than %d bytes (%w)", most, ErrBound)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&v); err == nil {
		if _, err = d.Token(); err == io.EOF { //nolint:errorlint // a decoder returns it bare
			return v, nil
		}
		err = errors.New("more than one value")
	}
	return nil, fmt.Errorf("the payload is not JSON: %w", err)
}
