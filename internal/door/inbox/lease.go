package inbox

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/wire"
)

// Lease gives whoever leases the messages of one group, in its order, and waits
// for some until ctx ends. Of a polled inbox each group is given out once in a
// run.
func (d *Door) Lease(ctx context.Context, x *Inbox, worker string, life job.Millis) (*wire.InboxTurn, error) {
	if x.HTTP != nil {
		return nil, job.Errorf(job.WrongState, "inbox %q delivers to %s by itself; nobody leases from it", x.Name, x.HTTP.URL)
	}
	answer := &wire.InboxTurn{Ordered: x.Ordered(), Messages: []wire.InboxLeased{}}
	for ctx.Err() == nil {
		turns, err := x.leaseOnce(ctx, worker, life)
		if err != nil {
			return nil, err
		}
		if len(turns) == 0 {
			continue // the next run has begun, or ctx ended
		}
		answer.Group = turns[0].Group
		for _, t := range turns[0].Deliveries {
			answer.Messages = append(answer.Messages, wire.InboxLeased{
				InboxMessage: Show(t.Job, t.Payload), Lease: string(t.Lease.Token.AppendTo(nil)),
			})
		}
		if x.BatchSize < 0 && len(answer.Messages) == rule.TurnMax {
			list, err := x.courier.engine.Turns.Members(ctx, x.Name, answer.Group, rule.TurnMax+1)
			if answer.More = err == nil && len(list) > rule.TurnMax; answer.More { // with the next lease, once this turn is settled
				x.courier.goOn(turns[0].Rest())
			}
		}
		break
	}
	return answer, nil
}

// leaseOnce waits for a turn of the run that goes on, as long as it does.
func (x *Inbox) leaseOnce(ctx context.Context, worker string, life job.Millis) ([]turn.Turn, error) {
	round, over := x.courier.current()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	polled := x.Query.Interval > 0
	if polled {
		go func() {
			select {
			case <-over:
				cancel()
			case <-ctx.Done():
			}
		}()
		if round == 0 { // the first run is yet to come
			<-ctx.Done()
			return nil, nil
		}
	}
	return x.courier.next(ctx, turn.Options{Worker: worker, Members: x.BatchSize, For: life, Before: round})
}
