package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Part is a feature with rows and memory of its own that takes part in the
// transactions of the engine. The engine has a list of parts and knows none of them
// by name; parts do not know each other. docs/adr/0008 says why it is so.
//
// What a part knows is rows, which every reader of the store sees, or memory that Load
// makes from rows. It keeps nothing that cannot be lost with the process.
type Part interface {
	// Join is called once, by New. It tells at which points the part is asked.
	Join(*Engine) Hooks
}

// Hooks are the points at which a part is asked, in the order of a transaction; nil =
// it has nothing to do there. They are called by one goroutine at a time, and may be
// called again for the same transaction: then Begin comes first.
type Hooks struct {
	// Load makes the memory of the part from rows: at a start, and after a commit failed.
	Load func(store.Reader) error
	// Recover makes rows fit for work: at a start, and after a commit failed.
	Recover func(*Tx) error
	// Configure writes what the configuration says: at a start, and when it is read again.
	Configure func(*Tx) error
	// Restart moves times on the steady clock by shift to the clock of this start.
	Restart func(tx *Tx, shift job.Millis) error

	// Begin drops what the part noted in memory for a transaction that did not take effect.
	Begin func()
	// Due are rows that come up by themselves.
	Due []Due
	// Publish makes true what the part noted: the transaction took effect.
	Publish func()

	// Templates are jobs that the part puts later: nothing may come to be that would
	// refuse them.
	Templates func(store.Reader) ([]Template, error)
	// Wipe removes up to n rows that Reset removes, and reports whether there may be more.
	Wipe func(tx *Tx, n int) (left bool, err error)
	// Stop ends what the part does outside transactions; Stop of the engine waits for it.
	Stop func()
}

// WipeTable is a Wipe of all rows of a table.
func WipeTable(t job.Table) func(*Tx, int) (bool, error) {
	return func(tx *Tx, n int) (left bool, err error) {
		rows, err := tx.tx.Rows(t, "", n)
		for _, row := range rows {
			if err := tx.tx.Unset(t, row.Key()); err != nil {
				return false, err
			}
		}
		return len(rows) == n, err
	}
}

// Template is a job that a part puts later.
type Template struct {
	Name string // what it is, for people
	Job  *job.Job
}

// Due is what happens to the rows of a table at their times.
type Due struct {
	Table  job.Table
	Steady bool // their times are on the steady clock
	Spared bool // none comes up while holders have extra time, because the clock stepped
	Turn   func(*Tx, job.Row) error
}

// Row makes a function of the rows of one type the Turn of their table.
func Row[R job.Row](turn func(*Tx, R) error) func(*Tx, job.Row) error {
	return func(tx *Tx, row job.Row) error { return turn(tx, row.(R)) }
}

// parts are the hooks of all parts, in the order in which they are asked.
type parts []Hooks

func (p parts) load(v store.Reader) error {
	for _, h := range p {
		if h.Load == nil {
			continue
		}
		if err := h.Load(v); err != nil {
			return err
		}
	}
	return nil
}

func (p parts) restart(r *Tx, shift job.Millis) error {
	for _, h := range p {
		if h.Restart == nil {
			continue
		}
		if err := h.Restart(r, shift); err != nil {
			return err
		}
	}
	return nil
}

func (p parts) recover(r *Tx) error {
	for _, h := range p {
		if h.Recover == nil {
			continue
		}
		if err := h.Recover(r); err != nil {
			return err
		}
	}
	return nil
}

func (p parts) configure(r *Tx) error {
	for _, h := range p {
		if h.Configure == nil {
			continue
		}
		if err := h.Configure(r); err != nil {
			return err
		}
	}
	return nil
}

func (p parts) templates(v store.Reader) (list []Template, err error) {
	for _, h := range p {
		if h.Templates == nil {
			continue
		}
		more, err := h.Templates(v)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func (p parts) stop() {
	for _, h := range p {
		if h.Stop != nil {
			h.Stop()
		}
	}
}

func (p parts) begin() {
	for _, h := range p {
		if h.Begin != nil {
			h.Begin()
		}
	}
}

func (p parts) publish() {
	for _, h := range p {
		if h.Publish != nil {
			h.Publish()
		}
	}
}
