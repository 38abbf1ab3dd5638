package inbox

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// Intake is what becomes of messages that came together, in their order.
type Intake struct {
	at   []int           // which message each of Jobs is
	Jobs []engine.NewJob // those that are to be taken in
	Out  []Accepted
	ids  []string // that the senders gave
}

// Accepted is what became of one message.
type Accepted struct {
	ID        job.ID
	Group     string
	Duplicate bool
	Err       error // it was refused, and nothing of it is kept
}

// NewIntake reads the messages. One with an error of its own concerns no other.
func (x *Inbox) NewIntake(ctx context.Context, list []Message, now job.Millis) *Intake {
	in := &Intake{Out: make([]Accepted, len(list)), ids: make([]string, len(list)), Jobs: make([]engine.NewJob, 0, len(list)), at: make([]int, 0, len(list))}
	for i := range list {
		m := &list[i]
		in.Jobs = in.Jobs[:len(in.Jobs)+1]
		n := &in.Jobs[len(in.Jobs)-1]
		m.Fill(ctx, n, x.Name, x.Settings, now)
		if in.ids[i] = n.Key; m.Err != nil {
			*n = engine.NewJob{}
			in.Out[i].Err, in.Jobs = m.Err, in.Jobs[:len(in.Jobs)-1]
			continue
		}
		n.Apart = true
		in.Out[i].Group = n.Job.Group
		in.at = append(in.at, i)
	}
	return in
}

// Put takes in what is in order, all or nothing, but for messages whose id was
// used for other content: they are refused alone.
func (in *Intake) Put(ctx context.Context, put func(context.Context, []engine.NewJob) ([]engine.Added, error)) error {
	if len(in.Jobs) == 0 {
		return nil
	}
	added, err := put(ctx, in.Jobs)
	if err != nil {
		return err
	}
	for i, a := range added {
		out := &in.Out[in.at[i]]
		if out.ID, out.Duplicate = a.ID, a.Duplicate; a.Err != nil {
			out.Duplicate, out.Err = false, sameID(in.Jobs[i].Key)
		}
	}
	return nil
}

func sameID(id string) error {
	return &job.Error{
		Kind: job.Exists, Field: wire.CorrelateID,
		Text: "the message id " + strconv.Quote(shorten(id)) + " was used for other content; a new message needs an id of its own",
	}
}

// New reports whether something was taken in that was not here.
func (in *Intake) New() bool {
	return slices.ContainsFunc(in.Out, func(a Accepted) bool { return a.Err == nil && !a.Duplicate })
}

// Append writes the answer to a bulk; code names the kind of an error.
func (in *Intake) Append(b []byte, code func(error) string) []byte {
	accepted, duplicates := 0, 0
	for i := range in.Out {
		if a := &in.Out[i]; a.Err == nil {
			accepted++
			if a.Duplicate {
				duplicates++
			}
		}
	}
	b = strconv.AppendInt(append(b, `{"accepted":`...), int64(accepted), 10)
	b = strconv.AppendInt(append(b, `,"duplicates":`...), int64(duplicates), 10)
	b = strconv.AppendInt(append(b, `,"refused":`...), int64(len(in.Out)-accepted), 10)
	b = append(b, `,"messages":[`...)
	for i := range in.Out {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		a := &in.Out[i]
		if id := in.ids[i]; id != "" {
			b = append(quoted(append(b, `"message_id":`...), id), ',')
		}
		if a.Err != nil {
			b = quoted(append(b, `"error":`...), a.Err.Error())
			b = append(quoted(append(b, `,"code":`...), code(a.Err)), '}')
			continue
		}
		b = quoted(append(b, `"id":`...), a.ID.String())
		b = quoted(append(b, `,"group":`...), a.Group)
		if a.Duplicate {
			b = append(b, `,"duplicate":true`...)
		}
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

func quoted(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // what is not UTF-8 is replaced
	return b
}
