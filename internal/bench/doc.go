// Package bench measures a Reprise server from outside, over its HTTP API, and
// checks while it measures that nothing was lost or delivered twice.
//
// It owns the load generator, the servers it starts for a run, and the report.
// It refuses to import any other package of ours: it knows a server only by
// its wire format, so the same generator can be pointed with a URL at any
// server that speaks it. A figure whose counts do not add up is not printed:
// the run fails and says which count was wrong.
//
// The generator shares its cores with the server, so every microsecond it
// spends is taken from the figure it reports. Hence the client of its own
// (conn): requests are built once and only their numbers are rewritten,
// answers are read for their status and length, and jobs on a take stream are
// read for their id and nothing else. net/http serves for the few calls
// outside the clock (api).
//
// Reading order: options, run, a phase (singles, bulk, drain, steady, latency,
// backlog, storm, memory, idle, restart: one file each), then producer, worker and
// settler, which do the work, and conn, which carries it.
package bench
