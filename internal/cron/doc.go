// Package cron reads cron expressions, finds their ticks in a time zone, and
// decides what becomes of ticks that were missed. It is pure: the time is an
// argument, and it starts nothing; internal/engine does.
//
// It is our own because no library fits: an entry needs 5 or 6 fields with L, W
// and #, days of month and of week joined the Vixie way, a defined answer to
// both ends of daylight saving time, a search that ends also for dates that
// never come, and a search backwards. Those that have the first lack the others.
package cron
