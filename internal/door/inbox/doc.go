// Package inbox is the vocabulary of inboxes: queues whose messages are
// delivered in order per correlation hint, in the words of the seed
// (spec/inbox.md). It reads settings and messages, finds the group of a
// message, says what a message and a group are in those words, and hands turns
// to a sink.
//
// It decides nothing about retrying, ordering, expiring or dying: an inbox is
// a queue of the engine with settings that Settings.Queue names, and a message
// is a job. Nothing here knows a store or HTTP.
package inbox
