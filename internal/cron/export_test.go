package cron

import (
	"time"

	"github.com/reprisehq/reprise/internal/job"
)

// Matches reports whether the clock on the wall shows what an expression names.
func Matches(e *Expression, at job.Millis, zone *time.Location) bool {
	_, offset := time.UnixMilli(int64(at)).In(zone).Zone()
	return e.matches(wall(seconds(at) + int64(offset)))
}

// EndsGap reports whether clocks were set forward to this moment.
func EndsGap(at job.Millis, zone *time.Location) bool {
	_, before := time.UnixMilli(int64(at) - 1).In(zone).Zone()
	_, after := time.UnixMilli(int64(at)).In(zone).Zone()
	return after > before
}

// matches reports whether a time matches.
func (e *Expression) matches(w wall) bool {
	at, ok := e.after(w)
	return ok && at == w
}
