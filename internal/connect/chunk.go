package connect

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// TypeRecord is the error type of a record that a sink cannot hand over.
const TypeRecord = "record"

// Chunk is the one message of a batch for a sink that takes chunks: its type is the tag,
// its body a chunk of records (internal/record).
func (b *Batch) Chunk() *Message {
	if len(b.Messages) != 1 {
		panic(fmt.Sprintf("connect: a delivery of %d chunks", len(b.Messages)))
	}
	return &b.Messages[0]
}

// Broken is the result of a chunk that is whole up to some length only: what is
// whole comes again, and the end dies.
func Broken(chunk []byte, whole int, err error) Result {
	f := job.Failure{Type: TypeRecord, Message: "the chunk is broken: " + err.Error()}
	if whole == 0 {
		return Result{Outcome: job.Died, Failure: f}
	}
	return Result{Outcome: job.Released, Parts: &Parts{
		Rest: chunk[:whole], Pieces: []Piece{{Body: chunk[whole:], Outcome: job.Died, Failure: f}},
	}}
}
