// Package jq evaluates jq expressions over payloads: filters that choose jobs,
// folds that merge two payloads into one, keys of messages. It owns what keeps
// a foreign expression harmless: no environment, no modules, no input functions,
// a time limit, and bounds on what goes in, what comes out and what it needs
// meanwhile (core.md section 9).
//
// An expression runs in a child process of the same binary, and a child that
// goes over a limit is killed. The interpreter looks at a limit between two
// steps only, and one step, such as all matches of a regular expression, may
// take hours and gigabytes: nothing inside one process could end it.
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
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/itchyny/gojq"
)

// SourceMax is the longest expression, in bytes.
const SourceMax = 16 << 10

// ErrBound is what an evaluation ends with that went over one of its limits:
// the answer is then not known. The text of an error that wraps it says which.
var ErrBound = errors.New("over a limit")

// Limits bound one evaluation. Time begins when the payloads have been read.
type Limits struct {
	Time  time.Duration
	Bytes int // of an input or a variable, and of an output, all as JSON
}

// Program is an expression that compiles. It may be used by several goroutines
// at the same time.
type Program struct {
	source string
	vars   []string
}

// Compile reads an expression that may use the variables with these names,
// each with its dollar sign, such as "$existing". The error says what is wrong
// with the expression.
func Compile(source string, vars ...string) (*Program, error) {
	if len(source) > SourceMax {
		return nil, errors.New("the expression is longer than " + strconv.Itoa(SourceMax) + " bytes")
	}
	if _, err := compile(source, vars, false); err != nil {
		return nil, err
	}
	return &Program{source, vars}, nil
}

// likeZizq are functions that Zizq's jaq has and the interpreter has not. Members
// have no order here.
const likeZizq = `def keys_unsorted: keys; def debug: .; def debug(f): (f | empty), .; .`

// compile reads an expression; a filter goes on behind an error.
func compile(source string, vars []string, filter bool) (*gojq.Code, error) {
	query, err := gojq.Parse(source)
	if err != nil {
		return nil, err
	}
	own, err := gojq.Parse(likeZizq)
	if err != nil {
		return nil, err
	}
	if filter {
		query = forgiving(query)
	}
	query.FuncDefs = append(own.FuncDefs, query.FuncDefs...)
	return gojq.Compile(query, gojq.WithVariables(vars))
}

// Run evaluates the expression and returns its first outputs as JSON, up to
// most of them; what would come behind those is not evaluated. input is JSON,
// nil for null, and so is each variable, in the order of Compile.
//
// An error of the expression itself comes with the outputs before it. One that
// wraps ErrBound means that a limit was reached; ctx.Err() that the caller gave
// up.
func (p *Program) Run(ctx context.Context, l Limits, most int, input []byte, vars ...[]byte) (outputs [][]byte, err error) {
	values := append([][]byte{input}, vars...)
	for _, text := range values {
		if len(text) > l.Bytes {
			return nil, fmt.Errorf("the payload is larger than %d bytes (%w)", l.Bytes, ErrBound)
		}
	}
	a := &answer{}
	err = children.ask(ctx, l.Time, &request{p.source, p.vars, most, l.Bytes, values}, a)
	return a.outputs, err
}

// Keeps reports of payloads, in their order, which a filter keeps: those of which
// any output is truthy. No output keeps none, an error is no output, and neither does a payload that is larger than the limit. With an error,
// that of the payload behind those is not known: it wraps ErrBound, or is
// ctx.Err(). Time is that of one payload, with the reading of it.
func (p *Program) Keeps(ctx context.Context, l Limits, payloads ...[]byte) (keeps []bool, err error) {
	if len(payloads) == 0 {
		return nil, nil
	}
	looked := make([][]byte, len(payloads))
	for i, payload := range payloads {
		if len(payload) <= l.Bytes {
			looked[i] = payload
		}
	}
	s := &sieved{of: looked}
	err = children.ask(ctx, l.Time, &request{p.source, p.vars, sieve, l.Bytes, looked}, s)
	return s.keeps, err
}

// Truthy reports whether an output counts as true: all do but false and null.
func Truthy(output []byte) bool {
	return !bytes.Equal(output, []byte("null")) && !bytes.Equal(output, []byte("false"))
}
