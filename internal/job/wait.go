package job

// Wait tells how the date came about for which a job waits since its latest
// failure. The zero Wait: no failure chose it.
type Wait struct {
	By   WaitBy
	Rule uint8 // which rule of its policy decided about the failure, 1 for the first; 0 = none matched, or none was asked
}

// WaitBy is who chose a date.
type WaitBy uint8

// Who may choose the date of the next attempt (core.md section 6).
const (
	WaitNobody WaitBy = iota
	WaitCurve         // of the policy, or of the rule
	WaitRule          // which gave the job back for a while
	WaitWorker        // by a time of its own
	WaitTarget        // by its Retry-After, with the jitter of the hold that followed
	WaitHold          // of the group or the queue, which lasts longer than all else
	WaitGrace         // inside which nothing is charged
	WaitFence         // because a run that the server ended may go on where it was
	WaitBys           // how many there are
)

func (w WaitBy) String() string {
	return [...]string{"", "curve", "rule", "worker", "target", "hold", "grace", "fence"}[w]
}
