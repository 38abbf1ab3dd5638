// Package cron reads cron expressions, finds their ticks in a time zone, and
// decides what becomes of ticks that were missed. It is pure: the time is an
// argument, and it starts nothing; internal/engine does.
//
// It is our own because no library fits: expressions mean what they mean to
// Zizq, whose library is croner (testdata/croner.txt holds what that makes of
// 2,000 of them), and an entry needs a defined answer to both ends of daylight
// saving time, a search that ends also for dates that never come, and a search
// backwards. None for Go has L, W, #, +, years and these.
package cron
