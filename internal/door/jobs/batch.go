package jobs

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/jq"
	"github.com/reprisehq/reprise/internal/part/fold"
	"github.com/reprisehq/reprise/wire"
)

// foldTime bounds one evaluation of an expression of a batch (core.md section
// 9). It is measured by the clock on the wall, so one that goes over it may
// only have waited for a processor: it is tried foldTries times.
const (
	foldTime  = 10 * time.Millisecond
	foldTries = 3
)

// The variables of the expressions.
const (
	varExisting = "$existing" // payload of the job that waits
	varNew      = "$new"      // payload of the newcomer
)

// batchAsk is the member batch of a job.
type batchAsk struct {
	Key  *string `json:"key"`
	When *string `json:"when"`
	Fold *string `json:"fold"`
}

// batch reads {key, when, fold}. What it holds is compiled: to read it by its shape is
// little beside that.
func (r *Reader) batch() *job.Batch {
	raw := r.given()
	if raw == nil {
		return nil
	}
	var a batchAsk
	if r.refused(read(raw, &a, "batch", r.tell)); r.err != nil {
		return nil
	}
	r.must("batch.key", a.Key != nil)
	r.must("batch.when", a.When != nil)
	if r.must("batch.fold", a.Fold != nil); r.err != nil {
		return nil
	}
	if *a.Key == "" {
		r.fail("batch.key", "must not be empty: all jobs of the server with the same key become one")
	}
	return &job.Batch{Key: r.label("batch.key", *a.Key), When: *a.When, Fold: *a.Fold}
}

// uniqueKey reads a key. An empty one is most often a variable that was never
// set, and would make strangers' jobs duplicates of each other.
func (r *Reader) uniqueKey(j *job.Job) {
	content, ok := r.text("unique_key")
	if !ok {
		return
	}
	if len(content) == 0 {
		r.fail("unique_key", "must not be empty; leave it out for a job that need not be unique")
	}
	uniqueOf(j).Key = r.label("unique_key", string(content))
}

var scopes = []job.UniqueScope{job.WhileQueued, job.WhileActive, job.WhileExists}

func (r *Reader) uniqueWhile(j *job.Job) {
	if s, ok := oneOf(r, "unique_while", scopes...); ok {
		uniqueOf(j).While = s
	}
}

// uniqueOf returns the unique key of a job that is being read, to be set.
func uniqueOf(j *job.Job) *job.Unique {
	x := extrasOf(j)
	if x.Unique == nil {
		x.Unique = &job.Unique{}
	}
	return x.Unique
}

// keys checks what a job says about keys once it is read as a whole.
func (r *Reader) keys(n *engine.NewJob) {
	x := n.Job.Extras
	switch {
	case x.Unique != nil && x.Unique.Key == "":
		r.fail("unique_while", "needs a unique_key")
	case x.Unique != nil && x.Batch != nil:
		r.fail("unique_key", "cannot be given together with batch: a job is either turned away or taken in")
	case x.Batch != nil && r.err == nil:
		if why := tryBatch(x.Batch, n.Payload, r.foldMax()); why != "" {
			r.fail("batch", why)
			if own, ok := errors.AsType[*job.Error](r.err); ok {
				own.Kind = job.Unprocessable
			}
		}
	}
}

// foldMax bounds a payload that goes into an expression, and one that comes out.
func (r *Reader) foldMax() int {
	if r.FoldMax <= 0 {
		return wire.BodyBytesMax
	}
	return int(min(r.FoldMax, 1<<31-1))
}

// tryBatch says what is wrong with the expressions: both must compile, and
// work with the new payload in both places.
func tryBatch(b *job.Batch, payload []byte, most int) string {
	for _, part := range []struct{ name, source string }{{"when", b.When}, {"fold", b.Fold}} {
		if _, err := programs.of(part.source); err != nil {
			return "expression: " + part.name + ": " + err.Error()
		}
	}
	ctx := context.Background() //nolint:forbidigo // a body is read without one, and an expression ends by itself
	if _, err := holds(ctx, b, payload, payload, most); err != nil {
		return "dry-run: when: " + err.Error()
	}
	if _, err := foldOnce(ctx, b, payload, payload, most); err != nil {
		return "dry-run: fold: " + err.Error()
	}
	return ""
}

// Fold is what an engine asks about newcomers of a batch: payloads, and what
// they become, are at most bytesMax long. A condition that fails is one that
// does not hold; a fold that fails refuses its newcomer alone, Unprocessable.
func Fold(bytesMax int64) fold.Folder {
	most := (&Reader{FoldMax: bytesMax}).foldMax()
	return func(ctx context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
		joins, err := holds(ctx, b, existing, newcomer, most)
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil || !joins {
			return nil, false, nil //nolint:nilerr // it does not hold
		}
		payload, err := foldOnce(ctx, b, existing, newcomer, most)
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil {
			return nil, false, &job.Error{
				Kind: job.Unprocessable, Field: "batch",
				Text: "batch fold: " + err.Error() + "; the expressions are those of the waiting job, which was the first with the key " + strconv.Quote(b.Key),
			}
		}
		return payload, true, nil
	}
}

// holds evaluates the condition: its first output decides.
func holds(ctx context.Context, b *job.Batch, existing, newcomer []byte, most int) (yes bool, err error) {
	out, err := evaluate(ctx, b.When, 1, existing, newcomer, most)
	return len(out) > 0 && jq.Truthy(out[0]), err
}

// foldOnce evaluates the fold, which has exactly one output.
func foldOnce(ctx context.Context, b *job.Batch, existing, newcomer []byte, most int) ([]byte, error) {
	out, err := evaluate(ctx, b.Fold, 2, existing, newcomer, most)
	if err == nil && len(out) != 1 {
		err = errors.New([...]string{"it gave no output", "", "it gave more than one output"}[len(out)] + ", and must give exactly one")
	}
	if err != nil {
		return nil, err
	}
	if at, why := job.Unreadable(out[0]); why != "" {
		return nil, errors.New("its output" + at + " " + why)
	}
	return out[0], nil
}

// evaluate returns the first outputs of an expression, so many of them.
func evaluate(ctx context.Context, source string, outputs int, existing, newcomer []byte, most int) (out [][]byte, err error) {
	p, err := programs.of(source)
	if err != nil {
		return nil, err
	}
	for range foldTries {
		out, err = p.Run(ctx, jq.Limits{Time: foldTime, Bytes: most}, outputs, nil, existing, newcomer)
		if !errors.Is(err, jq.ErrBound) {
			break
		}
	}
	return out, err
}

// programs are compiled expressions, by their text: most jobs of a batch bring
// the same ones. Used by any goroutine.
var programs compiled

type compiled struct {
	mu    sync.Mutex // guards what follows
	by    map[string]*jq.Program
	bytes int // of all texts
}

// programBytesMax bounds what is kept; beyond it, all is forgotten.
const programBytesMax = 256 << 10

func (c *compiled) of(source string) (*jq.Program, error) {
	c.mu.Lock()
	p := c.by[source]
	c.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := jq.Compile(source, varExisting, varNew)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(source); c.by == nil || c.bytes > programBytesMax {
		c.by, c.bytes = map[string]*jq.Program{}, len(source)
	}
	c.by[source] = p
	return p, nil
}

// appendKeys appends what an answer tells of keys.
func appendKeys(b []byte, x *job.Extras) []byte {
	if u := x.Unique; u != nil {
		b = word(quote(b, `,"unique_key":`, u.Key), `,"unique_while":"`, u.While.String())
	}
	if t := x.Batch; t != nil {
		b = quote(append(b, `,"batch":{`...), `"key":`, t.Key)
		b = append(quote(quote(b, `,"when":`, t.When), `,"fold":`, t.Fold), '}')
	}
	return b
}
