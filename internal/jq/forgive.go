package jq

import "github.com/itchyny/gojq"

// forgiving is an expression that goes on behind an error, as Zizq's jaq does, for
// which an error is one of the outputs. The interpreter gives up all that is to come:
// of `.[] | .a`, all items behind one that has no members. So each part that makes
// outputs for the next one has its errors to itself, and they are passed over.
func forgiving(q *gojq.Query) *gojq.Query {
	q = apart(q)
	inner := q.Term != nil && q.Term.Type == gojq.TermTypeQuery && len(q.Term.SuffixList) == 0
	switch {
	case inner:
		is := *q
		is.Term = &gojq.Term{Type: gojq.TermTypeQuery, Query: forgiving(q.Term.Query)}
		return &is
	case q.Op == gojq.OpComma, q.Op == gojq.OpPipe && len(q.Patterns) <= 1: // of several patterns an error chooses
		is := *q
		is.Left, is.Right = forgiving(q.Left), forgiving(q.Right)
		return &is
	}
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeTry, Try: &gojq.Try{Body: q}}}
}

// apart makes `.a[].b` the pipe that it stands for, `.a[] | .b`.
func apart(q *gojq.Query) *gojq.Query {
	if q.Term == nil {
		return q
	}
	list := q.Term.SuffixList
	for i, s := range list {
		if !s.Iter {
			continue
		}
		for i++; i < len(list) && list[i].Optional; i++ {
		}
		if i == len(list) {
			return q
		}
		head := *q.Term
		head.SuffixList = list[:i]
		rest := &gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: list[i:]}
		return &gojq.Query{FuncDefs: q.FuncDefs, Op: gojq.OpPipe, Left: &gojq.Query{Term: &head}, Right: &gojq.Query{Term: rest}}
	}
	return q
}
