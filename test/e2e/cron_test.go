package e2e

import (
	"slices"
	"strconv"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// TestEachTickOfCronHasOneJobWheneverTheServerIsKilled lets an entry tick every
// second and kills the server right after a tick, in the middle of starting,
// and while it makes up for what it missed.
func TestEachTickOfCronHasOneJobWheneverTheServerIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, dir)
	c := dial(s.url)
	var entry wire.CronEntry
	c.must(t, 200, &entry, "PUT", "/crons/clock/entries/every%20second",
		`{"expression":"* * * * * *","missed":"all","job":{"type":"tick","queue":"ticks","payload":{"n":1}}}`)
	first := entry.NextEnqueueAt
	var last string
	for round := range 8 {
		if round%3 == 2 {
			s.kill()
			launch(t, dir).kill() // wherever it is by then
		} else {
			jobs := c.take(t, "", 0, "ticks").read(t, 1+round*2)
			last = jobs[len(jobs)-1].ID
			s.kill()
		}
		s = start(t, dir)
		c.close()
		c = dial(s.url)
	}
	c.take(t, "", 0, "ticks").read(t, 20)
	s.terminate()
	s = start(t, dir)
	c = dial(s.url)
	c.must(t, 200, &entry, "PATCH", "/crons/clock/entries/every%20second", `{"paused":true}`)

	jobs := c.list(t, "queue=ticks")
	for i, j := range jobs {
		want := strconv.FormatInt(first+int64(i)*1000, 10)
		if got := j.Labels[wire.LabelCronTick]; got != want || j.Labels[wire.LabelCronGroup] != "clock" || j.Labels[wire.LabelCronEntry] != "every second" || string(j.Payload) != `{"n":1}` {
			t.Fatalf("job %d of %d has the labels %v and the payload %s, and its tick must be %s", i+1, len(jobs), j.Labels, j.Payload, want)
		}
	}
	if !slices.ContainsFunc(jobs, func(j wire.Job) bool { return j.ID == last }) {
		t.Errorf("job %s, which was delivered before a kill, is gone", last)
	}
	if end := first + int64(len(jobs)-1)*1000; entry.LastEnqueueAt != end || entry.NextEnqueueAt != end+1000 || entry.LastJobID != jobs[len(jobs)-1].ID {
		t.Errorf("the entry says %+v, and the last tick was %d", entry, end)
	}
}
