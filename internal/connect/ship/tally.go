package ship

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

// tally gathers what becomes of the records of a chunk.
type tally struct {
	done int // records that are delivered

	left  []byte         // the events that are left to be sent
	lefts int            // how many they are
	why   connect.Result // of what is left

	dead   []connect.Piece
	groups map[string]int // by what is the same in their reasons; the place in dead
}

// leave keeps an event for the next time. The first reason is that of all.
func (t *tally) leave(event []byte, why connect.Result) {
	if t.lefts == 0 {
		t.why = why
	}
	t.left, t.lefts = append(t.left, event...), t.lefts+1
}

// groupsMax bounds the pieces that one chunk dies in.
const groupsMax = 32

// die gives an event up, together with those that died of the same.
func (t *tally) die(event []byte, f job.Failure) {
	key := f.Type + " " + shape(f.Message)
	i, known := t.groups[key]
	switch {
	case known:
	case len(t.dead) == groupsMax:
		i = groupsMax - 1
	default:
		if t.groups == nil {
			t.groups = map[string]int{}
		}
		i = len(t.dead)
		t.groups[key], t.dead = i, append(t.dead, connect.Piece{Outcome: job.Died, Failure: f})
	}
	t.dead[i].Body = append(t.dead[i].Body, event...)
}

// shape is a reason without what stands between quotes, such as ids and values.
func shape(reason string) string {
	var b strings.Builder
	for i, part := range strings.Split(reason, "'") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return b.String()
}

// result is that of the chunk.
func (t *tally) result() connect.Result {
	switch {
	case t.lefts > 0 && t.done == 0 && t.dead == nil:
		return t.why
	case t.lefts > 0:
		r := t.why
		if r.Outcome == job.Retried {
			r.Failure.Message = fmt.Sprintf("%d of the records are left: %s", t.lefts, r.Failure.Message)
		}
		r.Parts = &connect.Parts{Rest: t.left, Pieces: t.dead}
		return r
	case t.dead == nil:
		return connect.Result{Outcome: job.OK}
	case t.done > 0:
		return connect.Result{Outcome: job.OK, Parts: &connect.Parts{Pieces: t.dead}}
	}
	r := connect.Result{Outcome: job.Died, Failure: t.dead[0].Failure}
	if len(t.dead) > 1 {
		r.Parts = &connect.Parts{Rest: t.dead[0].Body, Pieces: t.dead[1:]}
	}
	return r
}

// halve is the result of a chunk that is too large: its halves come one by one.
// A single record that is too large dies of what the server said.
func halve(chunk []byte, refused connect.Result) connect.Result {
	middle := 0
	for r := record.NewReader(chunk); r.Next() && r.Offset() < len(chunk); {
		if middle = r.Offset(); middle >= len(chunk)/2 {
			break
		}
	}
	if middle == 0 {
		refused.Outcome = job.Died
		return refused
	}
	return connect.Result{Outcome: job.Released, Parts: &connect.Parts{
		Rest: chunk[:middle], Pieces: []connect.Piece{{Body: chunk[middle:], Outcome: job.Released}},
	}}
}
