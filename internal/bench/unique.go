package bench

import (
	"context"
	"fmt"
	"strings"
)

// unique compares enqueues under unique keys, each another one, with plain
// ones, turn by turn on one server, so that both see the same machine.
func (r *run) unique(ctx context.Context) error {
	s, err := r.server(ctx)
	if err != nil {
		return err
	}
	for pair := 1; pair <= r.opts.Pairs; pair++ {
		for _, way := range []struct {
			name               string
			batch, connections int
		}{{"singles", 1, r.opts.Connections}, {"batches of 500", bulkBatch, bulkConnections}} {
			var turns [2]window // plain, unique
			for turn := range turns {
				i := (turn + pair) % 2 // who comes second finds the first one's jobs, so they take turns
				extra := [...]string{"", uniqueKeyed}[i]
				q := r.newQueue()
				if turns[i], _, err = r.enqueueWith(ctx, s, q, way.batch, way.connections, extra); err != nil {
					return err
				}
				if err := r.verify(ctx, s, q); err != nil {
					return err
				}
			}
			plain, keyed := turns[0], turns[1]
			r.figure(way.name+", plain", "jobs/s", plain.rate, nil)
			r.figure(way.name+", unique", "jobs/s", keyed.rate, nil)
			r.figure(way.name+", cost unique / plain", "", plain.rate/keyed.rate, r.goal(atMost(1.5)))
			if plain.cost.Known && plain.cost.cpuPerJob() > 0 {
				r.figure(way.name+", the same by processor time", "", keyed.cost.cpuPerJob()/plain.cost.cpuPerJob(), nil)
			}
			r.log.printf("unique %d/%d: %s: plain %s, unique %s jobs/s", pair, r.opts.Pairs, way.name, thousands(plain.rate), thousands(keyed.rate))
		}
	}
	return nil
}

// uniqueMark stands before the number of a job in its unique key.
const uniqueMark = `"unique_key":"`

// uniqueKeyed gives each job a unique key of its own: its number, and with it
// its queue, which is another one for each turn.
var uniqueKeyed = fmt.Sprintf(`,%s%s-`, uniqueMark, strings.Repeat("0", sequenceDigits))

// extraFor completes further fields of a job with the name of its queue.
func extraFor(extra, queue string) string {
	if strings.Contains(extra, uniqueMark) {
		return extra + queue + `"`
	}
	return extra
}
