package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"text/tabwriter"
	"time"
)

const (
	pollEvery = 200 * time.Millisecond
	sayEvery  = time.Second             // where there is no line to change in place
	awayFor   = 1500 * time.Millisecond // between the kill and the restart
)

// counts are the jobs by state, as the server tells.
type counts struct{ scheduled, ready, inFlight, completed, dead int64 }

func (c counts) open() int64 { return c.scheduled + c.ready + c.inFlight }

// watch shows the progress, kills the server when half of the events are
// delivered, starts it again, and returns once no job is open.
func (d *demo) watch(ctx context.Context) error {
	defer d.endLine()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var said time.Time
	for {
		select {
		case <-tick.C:
		case <-d.server.Exited:
			return errors.New("the server ended by itself")
		case <-d.worker.Exited:
			return errors.New("the worker ended by itself")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		now, err := d.ask(ctx)
		if err != nil {
			return err
		}
		delivered, _ := d.receiver.state()
		if d.report.KilledAt == 0 && 2*delivered >= d.report.Enqueued {
			if err := d.cut(ctx, delivered); err != nil {
				return err
			}
			continue
		}
		over := now.open() == 0
		if d.Live || over || time.Since(said) >= sayEvery {
			said = time.Now()
			d.show(now)
		}
		if over {
			return nil
		}
	}
}

// cut kills the server and starts it again on the same directory and port.
func (d *demo) cut(ctx context.Context, delivered int64) error {
	d.report.KilledAt = delivered
	gone := time.Now()
	d.server.Kill()
	d.say("the server was killed (SIGKILL) with %d of %d events delivered", delivered, d.report.Enqueued)
	select {
	case <-time.After(awayFor):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, port, err := net.SplitHostPort(d.addr)
	if err == nil {
		err = d.startServer(ctx, port)
	}
	if err != nil {
		return err
	}
	d.report.AwayMS = time.Since(gone).Milliseconds()
	d.say("it is back on the same directory after %d ms", d.report.AwayMS)
	return nil
}

// ask counts the jobs by state, all in one moment.
func (d *demo) ask(ctx context.Context) (c counts, err error) {
	q, err := d.client.Queue(ctx, queue)
	if err != nil {
		return c, err
	}
	n := &q.Jobs
	return counts{n.Scheduled, n.Ready, n.InFlight, n.Completed, n.Dead}, nil
}

// show prints one line of progress.
func (d *demo) show(c counts) {
	_, weather := d.receiver.state() // which may have more than the server was told of
	text := fmt.Sprintf("%5.1fs  done %d/%d   ready %d   at work %d   to retry %d   receiver %s",
		time.Since(d.start).Seconds(), d.report.Enqueued-c.open()-c.dead, d.report.Enqueued, c.ready, c.inFlight, c.scheduled, weather)
	if d.Live {
		fmt.Fprint(d.Out, "\r\x1b[K", text)
	} else {
		fmt.Fprintln(d.Out, text)
	}
}

// say prints a line that stays.
func (d *demo) say(format string, args ...any) {
	if d.Live {
		fmt.Fprint(d.Out, "\r\x1b[K")
	}
	fmt.Fprintf(d.Out, "%5.1fs  %s\n", time.Since(d.start).Seconds(), fmt.Sprintf(format, args...))
}

func (d *demo) endLine() {
	if d.Live {
		fmt.Fprintln(d.Out)
	}
}

// Print writes the account.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range []struct {
		name string
		n    int64
		note string
	}{
		{"enqueued", r.Enqueued, "acknowledged by the server"},
		{"delivered", r.Delivered, "different events the receiver accepted"},
		{"attempts", r.Attempts, "by the server's count"},
		{"retries", r.Retries, "attempts that failed and were followed by another"},
		{"dead", r.Dead, "given up"},
		{"duplicates", r.Duplicates, "events the receiver accepted once more"},
		{"lost", r.Lost, "acknowledged, but neither delivered nor dead"},
	} {
		fmt.Fprintf(t, "%s\t%d\t\t  %s\n", row.name, row.n, row.note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	a := r.Answers
	_, err := fmt.Fprintf(w, "\nThe receiver answered %d times 204, %d times 429 and %d times 500, and was down in between.\n"+
		"The server was killed after %d deliveries and away for %d ms. All of it took %.1f s.\n",
		a.OK, a.Busy, a.Broken, r.KilledAt, r.AwayMS, float64(r.TookMS)/1000)
	return err
}
