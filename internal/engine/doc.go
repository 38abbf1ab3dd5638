// Package engine is the only owner of commits and of the clock. Doors call
// its verbs; it asks package rule what shall happen, writes the answer in one
// transaction together with whatever else is waiting (group commit), and
// wakes who waits for it.
//
// One goroutine, the committer, runs every command and serves every waiting
// holder, so there is no lock on rules; between batches it sleeps until the
// soonest deadline of any hand. A second one waits for the disk, in order, while
// the committer already applies the next batch. See DESIGN sections 2 and 4.
package engine
