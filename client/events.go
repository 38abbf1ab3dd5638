package client

import (
	"reflect"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// Events tell what a worker does. Each may be nil. They are called from many
// goroutines, in the middle of the work, so they must not block.
type Events struct {
	// Connected: the server accepted the stream.
	Connected func()

	// Disconnected: the stream ended; the worker connects again after wait.
	// What is running goes on, and its leases stay valid for the server's
	// re-attach window.
	Disconnected func(err error, wait time.Duration)

	// Started: an attempt begins.
	Started func(d *Delivery)

	// Lost: the lease of a waiting job ended before its turn came (its start
	// timeout, for example). It is not run here.
	Lost func(d *Delivery)

	// Voided: the server ended an attempt that ran here (ErrVoided says why). Its
	// outcome counts for nothing and is not told.
	Voided func(d *Delivery, why error)

	// Finished: the handler returned. outcome is one of wire.OutcomeOK and so on.
	Finished func(d *Delivery, outcome string, err error, took time.Duration)

	// Settled: the server accepted the outcome.
	Settled func(s wire.Settle, v wire.Verdict)

	// Refused: the server refused the outcome for good, so it counts for
	// nothing; the usual reason is a lease that had lapsed.
	Refused func(s wire.Settle, v wire.Verdict)

	// Delayed: outcomes wait because the server did not take them.
	Delayed func(waiting int, err error, wait time.Duration)

	// Draining: the worker stops; so many jobs still run, and so many are given
	// back.
	Draining func(running, unstarted int)
}

// fill spares the worker a check at each call.
func (e *Events) fill() {
	usual(&e.Connected, func() {})
	usual(&e.Disconnected, func(error, time.Duration) {})
	usual(&e.Started, func(*Delivery) {})
	usual(&e.Voided, func(*Delivery, error) {})
	usual(&e.Lost, func(*Delivery) {})
	usual(&e.Finished, func(*Delivery, string, error, time.Duration) {})
	usual(&e.Settled, func(wire.Settle, wire.Verdict) {})
	usual(&e.Refused, func(wire.Settle, wire.Verdict) {})
	usual(&e.Delayed, func(int, error, time.Duration) {})
	usual(&e.Draining, func(int, int) {})
}

// usual sets a function that is nil.
func usual[F any](f *F, to F) {
	if reflect.ValueOf(*f).IsNil() {
		*f = to
	}
}
