package job

// Missed is what becomes of the ticks of a cron entry that came while the
// server was down, stood still or was refused.
type Missed uint8

// The rules; MissedOnce is the default.
const (
	MissedOnce Missed = iota // one job for all of them
	MissedSkip               // none
	MissedAll                // one job for each, within a bound
	missedEnd
)

var missedNames = [missedEnd]string{"once", "skip", "all"}

func (m Missed) String() string { return nameOf(missedNames[:], uint8(m)) }

// Valid reports whether it is one of the rules.
func (m Missed) Valid() bool { return m < missedEnd }

// CronGroup is a named set of cron entries, with what they share.
type CronGroup struct {
	Name      string
	Zone      string // of entries that name none; "" = the server's
	Missed    Missed // of entries that name none
	Paused    bool
	PausedAt  Millis // latest, 0 = never
	ResumedAt Millis
}

// Table implements Row.
func (g *CronGroup) Table() Table { return CronGroups }

// Key implements Row.
func (g *CronGroup) Key() string { return g.Name }

// Due implements Row.
func (g *CronGroup) Due() Millis { return 0 }

// CronEntry enqueues a job at each tick of an expression.
type CronEntry struct {
	Group, Name string
	Expression  string
	Zone        string  // "" = the group's
	Missed      *Missed // nil = the group's
	Paused      bool
	PausedAt    Millis // latest, 0 = never
	ResumedAt   Millis

	Job     *Job // the template: what a caller may choose of a new job; never changed
	Place   Place
	Payload []byte

	Next    Millis // the first tick that is not dealt with yet; 0 = none comes
	Last    Millis // the latest tick that a job was enqueued for; 0 = none
	LastJob ID     // that job
	Skipped int64  // ticks that were missed and not made up for

	Error    string // why the latest enqueue was refused; "" = it was not
	ErrorAt  Millis
	Failures uint32 // refusals in a row
	Retry    Millis // a refused enqueue is tried again then; 0 = it was not refused
}

// CronKey is the key of an entry; names hold no NUL.
func CronKey(group, entry string) string { return group + "\x00" + entry }

// Table implements Row.
func (e *CronEntry) Table() Table { return CronEntries }

// Key implements Row.
func (e *CronEntry) Key() string { return CronKey(e.Group, e.Name) }

// Due implements Row.
func (e *CronEntry) Due() Millis {
	if e.Next == 0 {
		return 0
	}
	return max(e.Next, e.Retry)
}

// Labels of a job that a cron entry enqueued.
const (
	LabelCronGroup = "cron_group"
	LabelCronEntry = "cron_entry"
	LabelCronTick  = "cron_tick" // the tick in milliseconds since the epoch; not on a run that was asked for
)
