// Package account says a second time, and without rule.Step, what a task must come
// to: Tally by the events that happened to it, Late by the states of a task and its
// run when a result arrives. Tests hold the server to both; docs/protocol/states.md
// is written from the second. The server links neither.
package account
