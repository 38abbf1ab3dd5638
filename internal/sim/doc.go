// Package sim holds a seeded simulation of the whole engine; there is only
// test code in it.
//
// One number decides a history: what clients and workers do, how the clock
// jumps, when commits fail and when the power goes. The engine is the real one,
// on the store in memory, in a bubble of fake time (testing/synctest), so a
// history of hours takes milliseconds and happens again exactly.
//
// Nothing the engine says is believed. A disk between engine and store notes
// every write (disk_test.go), and a judge (judge_test.go, law_*_test.go) asks
// of each one: who asked for this, or which clock was due, and is this what
// the specification makes of it? The laws are written from spec/core.md a
// second time, without package rule. After every step the judge's books are
// compared with a full scan of the store, clients' answers with the books, and
// everything due must have happened.
//
// A history that fails is cut down to the steps that matter and printed;
// docs/testing.md says how to read it.
package sim
