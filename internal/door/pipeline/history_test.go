package pipeline

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

var histories = flag.Int("pipeline.histories", 60, "how many random histories of pipelines are played; make sim plays 1,000")

// world is a pipeline that reads a file of numbered lines, targets that fail as dice have
// it, and a ledger that the product does not know.
type world struct {
	*rig
	dice    *rand.Rand
	lines   int         // of the file
	cuts    int         // of the power
	healed  atomic.Bool // from now on every target is well
	targets []*moody
}

// moody is a target that answers as it likes.
type moody struct {
	w    *world
	mu   sync.Mutex // guards dice, got
	dice *rand.Rand
	got  map[int]int // times that each line was delivered
	cost job.Millis
}

func (m *moody) Close() error { return nil }

func (m *moody) Deliver(ctx context.Context, b *connect.Batch) []connect.Result {
	m.mu.Lock()
	mood, slow := m.dice.IntN(10), m.dice.IntN(4) == 0
	m.mu.Unlock()
	healed := m.w.healed.Load()
	if slow && !healed {
		select {
		case <-time.After(time.Duration(m.cost) * time.Millisecond):
		case <-ctx.Done():
			return []connect.Result{{Outcome: job.Released}}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	body := b.Messages[0].Body
	switch {
	case healed || mood < 4:
		m.take(body)
		return []connect.Result{{Outcome: job.OK}}
	case mood < 6:
		return []connect.Result{{Outcome: job.Retried, Failure: job.Failure{Type: "503"}}}
	case mood < 7:
		return []connect.Result{{Outcome: job.Died, Failure: job.Failure{Type: "400"}}}
	case mood < 8: // the connection broke behind the work
		m.take(body)
		return []connect.Result{{Outcome: job.Retried, Failure: job.Failure{Type: "network"}}}
	}
	return []connect.Result{m.partly(body)}
}

// partly takes some records, refuses some for good, and wants some again.
func (m *moody) partly(body []byte) connect.Result {
	var parts [3][]byte
	for e := record.NewReader(body); e.Next(); {
		k := m.dice.IntN(3)
		parts[k] = append(parts[k], e.Raw...)
	}
	m.take(parts[0])
	r := connect.Result{Outcome: job.Retried, Failure: job.Failure{Type: "429"}, Parts: &connect.Parts{Rest: parts[1]}}
	if parts[2] != nil {
		r.Parts.Pieces = []connect.Piece{{Body: parts[2], Outcome: job.Died, Failure: job.Failure{Type: "mapping"}}}
	}
	if parts[1] != nil {
		return r
	}
	if parts[2] != nil { // what is dead is all that is left
		return connect.Result{Outcome: job.Died, Failure: job.Failure{Type: "mapping"}, Parts: &connect.Parts{Rest: parts[2]}}
	}
	return connect.Result{Outcome: job.OK}
}

func (m *moody) take(body []byte) {
	for _, line := range linesOf(body) {
		n, err := strconv.Atoi(line)
		if err != nil {
			panic(err)
		}
		m.got[n]++
	}
}

func (m *moody) times(line int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.got[line]
}

// Run reads the file from where it was taken. It is the source of the world.
func (w *world) Run(ctx context.Context, into connect.Intake) error {
	at, err := into.Cursors(ctx)
	if err != nil {
		return err
	}
	next := 0
	if b := at["file"]; b != nil {
		next = int(binary.BigEndian.Uint32(b))
	}
	for next < w.lines {
		n := min(w.lines, next+1+int(w.seed(next)%7))
		var lines []string
		for i := next; i < n; i++ {
			lines = append(lines, strconv.Itoa(i))
		}
		r := records("tag"+strconv.Itoa(n%3), lines...)
		r.At = map[string][]byte{"file": binary.BigEndian.AppendUint32(nil, uint32(n))}
		if err := into.Take(ctx, r); err != nil {
			return err
		}
		next = n
		if !wait(ctx, time.Duration(w.seed(next)%2000)*time.Millisecond) {
			return nil
		}
	}
	return nil
}

// seed is the same for the same line, also behind a power cut.
func (w *world) seed(line int) uint32 { return uint32(line)*2654435761>>7 + 1 }

func (w *world) begin(outputs []*Output) {
	w.part.Engine, w.part.Reads = w.Engine, w.Reads
	plan := &Plan{
		Name: "p", Flush: FlushDefault, Base: BaseDefault, Cap: job.Minute,
		Inputs: []*Input{{Name: "in", Source: w}}, Outputs: outputs, Now: time.Now,
	}
	var err error
	if w.pipe, err = Start(w.Context(), w.part, plan, enginetest.Quiet); err != nil {
		w.Fatal(err)
	}
}

// play is one history. Every line has come to each output that matches it, or is dead for
// it; without a power cut no line came twice that was not taken twice by a target that said it failed.
func (w *world) play() error {
	var outputs []*Output
	for n := range 1 + w.dice.IntN(3) {
		m := &moody{w: w, dice: enginetest.Dice(w.dice.Uint64()), got: map[int]int{}, cost: job.Millis(w.dice.IntN(5000))}
		w.targets = append(w.targets, m)
		o := &Output{Name: strconv.Itoa(n), Sink: m, Lanes: 1 + w.dice.IntN(3), Limit: job.LimitOf(uint32(w.dice.IntN(4)))}
		if w.dice.IntN(3) == 0 {
			o.Glob = "tag" + strconv.Itoa(w.dice.IntN(3))
		}
		if w.dice.IntN(3) == 0 {
			o.Most = 200 + w.dice.Int64N(2000)
		}
		outputs = append(outputs, o)
	}
	w.lines = 50 + w.dice.IntN(200)
	w.begin(outputs)
	for range w.dice.IntN(8) {
		w.Pass(job.Millis(w.dice.IntN(20_000)))
		old := w.pipe
		if w.dice.IntN(2) == 0 {
			w.cuts++
			w.PowerCut()
			old.Stop()
		} else {
			old.Stop()
			w.Restart(job.Millis(w.dice.IntN(5000)))
		}
		w.begin(outputs)
	}
	w.Pass(job.Hour)
	w.healed.Store(true)
	w.Pass(job.Day)
	if idle, err := w.pipe.Idle(w.Context()); err != nil || !idle {
		return errors.Join(errors.New("work is left behind"), err)
	}
	return w.judge(outputs)
}

func (w *world) judge(outputs []*Output) error {
	for n, o := range outputs {
		dead, err := w.dead(o)
		if err != nil {
			return err
		}
		refused := o.Count.Refused.Load()
		missing := 0
		for next := 0; next < w.lines; {
			end := min(w.lines, next+1+int(w.seed(next)%7))
			for i := next; i < end; i++ {
				fits := o.Fits("tag" + strconv.Itoa(end%3))
				switch got := w.targets[n].times(i); {
				case !fits && got+dead[i] > 0:
					return fmt.Errorf("output %d got line %d, which is not for it", n, i)
				case fits && got+dead[i] == 0:
					missing++
				case dead[i] > 1 && w.cuts == 0:
					return fmt.Errorf("line %d is dead %d times for output %d", i, dead[i], n)
				}
			}
			next = end
		}
		if int64(missing) > refused && (w.cuts == 0 || o.Most == 0) {
			return fmt.Errorf("output %d: %d lines are gone, and %d were refused for want of room", n, missing, refused)
		}
	}
	return nil
}

// dead are the lines of the dead jobs of an output.
func (w *world) dead(o *Output) (map[int]int, error) {
	list, err := w.List(w.Context(), engine.Filter{Queues: []string{o.Queue}, States: []job.State{job.Dead}}, 10_000)
	if err == nil {
		err = w.Payloads(w.Context(), list)
	}
	dead := map[int]int{}
	for _, l := range list {
		if l.Job.Reason == job.Alive {
			return nil, fmt.Errorf("job %s is dead without a reason", l.Job.ID)
		}
		for _, line := range w.shownLines(l.Payload) {
			n, _ := strconv.Atoi(line)
			dead[n]++
		}
	}
	return dead, err
}

// TestPipelinesLoseNothing plays random histories: targets that fail, are slow and answer
// in part, power cuts, restarts, full outputs.
func TestPipelinesLoseNothing(t *testing.T) {
	for seed := range *histories {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			scenario(t, func(r *rig) {
				w := &world{rig: r, dice: enginetest.Dice(uint64(seed))}
				if err := w.play(); err != nil {
					t.Errorf("seed %d: %v (-pipeline.histories to play more)", seed, err)
				}
			})
		})
	}
}
