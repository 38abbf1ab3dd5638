// Package jobs is the vocabulary of the jobs door (spec/jobs.md): it reads the
// bodies and queries of its calls into the engine's types, refuses what is
// wrong by naming the field, and writes jobs, pages and verdicts. It owns no
// rule about jobs and knows no HTTP; package httpapi carries it.
//
// A member that we read must not be there twice. An unknown one is ignored,
// as Zizq does, and told (Reader.Unknown); in the settings of a queue it is
// refused. null means left out. A payload is passed on as it was
// written, byte for byte, unless it holds a line break.
package jobs
