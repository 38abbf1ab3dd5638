package sim_test

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/cron"
)

const cronGroup = "crons"

var (
	cronNames       = []string{"e1", "e2"}
	cronExpressions = []string{"*/10 0 * * * *", "*/15 1 * * * *", "15 */6 * * * *", "0 */10 * * * *"}
)

// cronAsk is what is asked of cron.
type cronAsk struct {
	entry  string              // "" = the group
	set    *job.CronEntry      // what it shall be: expression, rule, template; times by the engine
	paused *bool               // it shall be so, or not
	gone   bool                // it shall leave
	run    bool                // its job shall come now
	doIt   func() (any, error) // the call
}

// changeCron sets an entry, pauses, resumes, deletes or runs it, or pauses the group.
func (w *world) changeCron() { w.changeEntry(pick(w, cronNames)) }

func (w *world) changeEntry(entry string) {
	row, _ := w.judge.book.rows[rowKey{job.CronEntries, job.CronKey(cronGroup, entry)}].(*job.CronEntry)
	g, _ := w.judge.book.rows[rowKey{job.CronGroups, cronGroup}].(*job.CronGroup)
	a := &cronAsk{entry: entry}
	r := &request{kind: askCron, cron: a, name: cronGroup}
	by := job.Actor{}
	switch n := w.dice.IntN(10); {
	case row == nil || n < 3:
		w.setCronEntry(r)
	case n < 5:
		paused := !row.Paused
		a.paused, r.text = &paused, fmt.Sprintf("pause %t of %s", paused, entry)
		a.doIt = func() (any, error) { return w.e.Crons.PauseEntry(w.ctx, cronGroup, entry, paused, by) }
	case n < 7 && g != nil:
		paused := !g.Paused
		a.entry, a.paused, r.text = "", &paused, fmt.Sprintf("pause %t of the cron group", paused)
		a.doIt = func() (any, error) { return w.e.Crons.Patch(w.ctx, cronGroup, cron.Patch{Paused: &paused}, by) }
	case n < 8:
		a.gone, r.text = true, "delete "+entry
		a.doIt = func() (any, error) { return nil, w.e.Crons.DeleteEntry(w.ctx, cronGroup, entry, by) }
	default:
		w.names++
		a.run, r.label, r.text = true, fmt.Sprint("r", w.names), "run "+entry
		a.doIt = func() (any, error) { added, _, err := w.e.Crons.Run(w.ctx, cronGroup, entry, by); return added, err }
	}
	w.askCron(r)
}

// askCron asks for a change of cron.
func (w *world) askCron(r *request) {
	a := r.cron
	w.say("    %s", r)
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		if err != nil {
			if r.commit > 0 && job.KindOf(err) != job.Unavailable {
				broken("I2", "%s took effect and was refused: %v", r, err)
			}
			return w.refusal("cron", err, job.NotFound, job.OverLimit, job.Unprocessable)
		}
		if r.commit == 0 && a.paused != nil {
			return "it was so already"
		}
		w.accepted(r, false)
		return "done"
	}
	w.start(c, func() { _, err = a.doIt() })
}

// setCronEntry draws what an entry shall be.
func (w *world) setCronEntry(r *request) {
	ask := w.drawCronEntry(r.cron.entry)
	if r.cron.entry == cronNames[0] && w.oneIn(2) { // one entry alone: the order of two that fold at once is not ours to choose
		w.drawCronBatch(&ask.Job)
	}
	w.askCronEntry(r, ask)
}

func (w *world) drawCronEntry(name string) *cron.Ask {
	w.names++
	body := fmt.Sprintf("c%d|%s", w.names, strings.Repeat(".", w.dice.IntN(12)))
	ask := &cron.Ask{Name: name, Expression: pick(w, cronExpressions), Job: engine.NewJob{Job: w.draw(), Payload: []byte(body)}}
	ask.Job.Job.ReadyAt, ask.Job.Job.ExpiresAt, ask.Job.Job.GraceUntil = 0, 0, 0
	if w.oneIn(6) {
		ask.Job.Place = job.PlaceFront
	}
	if !w.oneIn(4) {
		ask.Missed = new(pick(w, []job.Missed{job.MissedOnce, job.MissedSkip, job.MissedAll}))
	}
	if w.oneIn(4) {
		ask.Paused = new(w.oneIn(2))
	}
	return ask
}

// askCronEntry makes a request of what an entry shall be.
func (w *world) askCronEntry(r *request, ask *cron.Ask) {
	a := r.cron
	template := ask.Job.Job
	template.State = job.Ready
	a.paused = ask.Paused
	a.set = &job.CronEntry{
		Group: cronGroup, Name: a.entry, Expression: ask.Expression, Missed: ask.Missed,
		Job: &template, Place: ask.Job.Place, Payload: ask.Job.Payload,
	}
	rule := "the group's"
	if ask.Missed != nil {
		rule = ask.Missed.String()
	}
	r.text = fmt.Sprintf("set %s to %s, missed %s, job %s%s", ask.Name, ask.Expression, rule, ask.Job.Payload, described(&ask.Job))
	a.doIt = func() (any, error) { return w.e.Crons.SetEntry(w.ctx, cronGroup, *ask, job.Actor{}) }
}
