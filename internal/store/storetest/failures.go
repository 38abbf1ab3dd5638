package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var failures = []subject{
	{"come from both ends, paged", failurePages},
	{"go with their job", failuresGo},
}

// failed makes a job fail n times.
func (x *site) failed(name string, n int) *job.Job {
	x.Helper()
	a := x.put("q", name, kept(job.Unset, job.Hour), edit(func(j *job.Job) { j.Retry = &job.Retry{Limit: job.Unlimited()} }))
	x.update(func(tx store.Tx) error {
		for range n {
			t := x.token()
			_, err := x.step(tx, a.ID, rule.Command{Verb: rule.Take, Lease: &job.Lease{Token: t, Holder: "h"}})
			if err != nil {
				return err
			}
			f := job.Failure{Type: "E", Message: "broken", Backtrace: "at\nline", Status: 503, ExitCode: -1, Timeout: true, Blank: job.BlankBacktrace}
			if _, err = x.step(tx, a.ID, rule.Command{Verb: rule.SettleRetry, Token: t, Failure: f}); err != nil {
				return err
			}
			if _, err = x.step(tx, a.ID, rule.Command{Verb: rule.Revive}); err != nil {
				return err
			}
		}
		return nil
	})
	return a
}

// numbers returns the numbers of failure records.
func (x *site) numbers(id job.ID, from uint32, desc bool, n int) string {
	x.Helper()
	var numbers []string
	x.view(func(r store.Reader) error {
		list, err := r.Failures(id, from, desc, n)
		for _, f := range list {
			numbers = append(numbers, fmt.Sprint(f.Number))
			if f.Message != "broken" || f.Backtrace != "at\nline" || f.Status != 503 || f.ExitCode != -1 || !f.Timeout || f.Holder != "h" || f.Failed != x.now || f.Started != x.now || f.Type != "E" {
				x.Errorf("not what was put: %+v", f)
			}
		}
		return err
	})
	return strings.Join(numbers, " ")
}

func failurePages(x *site) {
	a := x.failed("a", 4)
	x.failed("b", 2)
	x.update(func(tx store.Tx) error {
		return errors.Join(tx.DropFailure(a.ID, 2), tx.DropFailure(a.ID, 77))
	})
	for range 2 {
		for _, c := range []struct {
			from uint32
			desc bool
			n    int
			want string
		}{
			{0, false, 9, "1 3 4"},
			{0, true, 9, "4 3 1"},
			{0, false, 1, "1"},
			{0, true, 2, "4 3"},
			{0, true, 0, ""},
			{1, false, 9, "3 4"},
			{2, false, 9, "3 4"},
			{4, false, 9, ""},
			{3, true, 9, "1"},
			{2, true, 9, "1"},
			{1, true, 9, ""},
			{99, true, 1, "4"},
		} {
			x.expect(fmt.Sprintf("%+v", c), x.numbers(a.ID, c.from, c.desc, c.n), c.want)
		}
		x.reopen()
	}
}

func failuresGo(x *site) {
	a, b := x.failed("a", 3), x.failed("b", 1)
	x.end(a)
	x.expect("of a job that is gone", x.numbers(a.ID, 0, false, 9), "")
	x.expect("of its neighbour", x.numbers(b.ID, 0, false, 9), "1")
	x.update(func(tx store.Tx) error {
		old, err := tx.Get(b.ID)
		return errors.Join(err, tx.PutFailure(b.ID, &job.Failure{Number: 2}), tx.Write(old, nil))
	})
	x.expect("put and gone in one transaction", x.numbers(b.ID, 0, false, 9), "")
}
