// Package job holds the nouns of Reprise: what things are called and which
// fields they have. It owns no rule (see package rule), does no input or
// output, and imports nothing of ours.
//
// The words are those of DESIGN section 1: a Job stands in a Queue, perhaps
// behind the Gate of its Group; a Lease is the right of a Holder to run one
// attempt; the end of an attempt is an Outcome.
package job
