// Package grid is the vocabulary of the grid door (spec/grid.md): sessions of
// tasks on engines. It reads options, sessions, tasks and engines into the
// core's types, decides from which level an option comes, refuses what is wrong
// by naming the field, and writes sessions, tasks, results and engines.
//
// It owns no rule. When a task is retried or rescheduled, who may run it, which
// session is next and which result counts is decided by internal/rule and
// internal/engine; package httpapi carries this one over HTTP.
//
//	session  a queue with grid settings; its options are resolved once, when it
//	         is opened, from session > service type > broker > profile
//	task     a job of that queue
//	engine   a holder with slots and properties
//	broker   the server
package grid
