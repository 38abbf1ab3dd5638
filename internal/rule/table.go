package rule

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// Verb is a thing that can happen to a job.
type Verb uint8

// The verbs of DESIGN section 2.
const (
	Put Verb = iota
	Take
	Extend
	SettleOK
	SettleRetry
	SettleRelease
	SettleDead
	Lapse
	Promote
	Expire
	Offer
	Revive
	Cancel
	Patch
	Purge
	Verbs // how many there are
)

var verbNames = [Verbs]string{
	"put", "take", "extend", "settle ok", "settle retry", "settle release", "settle dead",
	"lapse", "promote", "expire", "offer", "revive", "cancel", "patch", "purge",
}

func (v Verb) String() string { return verbNames[v] }

// states is a set of states.
type states uint8

func set(list ...job.State) states {
	var s states
	for _, st := range list {
		s |= 1 << st
	}
	return s
}

func (s states) has(st job.State) bool { return s&(1<<st) != 0 }

func (s states) String() string {
	var names []string
	for st := job.None; st < job.States; st++ {
		if s.has(st) {
			names = append(names, st.String())
		}
	}
	return strings.Join(names, ", ")
}

// row is one line of the transition table.
type row struct {
	verb Verb
	from states
	to   states
	note string
}

// transitions is the table of DESIGN section 2 as code. Any other pair is a
// WrongState error. docs/protocol/states.md is generated from it, and a test compares.
//
// None as a target means "gone": a terminal job without retention leaves at once.
var transitions = [Verbs]row{
	Put:           {Put, set(job.None), set(job.Ready, job.Scheduled), "idempotent by key if given"},
	Take:          {Take, set(job.Ready, job.Leased), set(job.Leased), "fresh token; from leased only while a copy is wanted"},
	Extend:        {Extend, set(job.Leased), set(job.Leased), "heartbeat of a unary lease, the word that the run started, or a start of the server"},
	SettleOK:      {SettleOK, set(job.Leased, job.Ready, job.Scheduled), set(job.Done, job.None), "voids every other token; from ready and scheduled only as a late OK"},
	SettleRetry:   {SettleRetry, set(job.Leased), set(job.Ready, job.Scheduled, job.Leased, job.Dead, job.None), "charges an attempt, except inside grace; the last live copy's end decides"},
	SettleRelease: {SettleRelease, set(job.Leased), set(job.Ready, job.Scheduled, job.Leased, job.Dead, job.None), "never charges; ends a job whose other copy failed past its limit"},
	SettleDead:    {SettleDead, set(job.Leased), set(job.Dead, job.None), "the worker gives up for good"},
	Lapse:         {Lapse, set(job.Leased), set(job.Ready, job.Scheduled, job.Leased, job.Dead, job.None), "clock or disconnect: as retry for a run timeout, as release otherwise"},
	Promote:       {Promote, set(job.Scheduled), set(job.Ready), "clock"},
	Expire:        {Expire, set(job.Scheduled, job.Ready), set(job.Dead, job.None), "clock"},
	Offer:         {Offer, set(job.Leased), set(job.Leased), "one more copy wanted"},
	Revive:        {Revive, set(job.Dead, job.Scheduled), set(job.Ready), "operator; counters start again, history stays"},
	Cancel:        {Cancel, set(job.Scheduled, job.Ready, job.Leased), set(job.Dead, job.None), "operator; voids every token"},
	Patch:         {Patch, set(job.Scheduled, job.Ready, job.Leased), set(job.Scheduled, job.Ready, job.Leased), "operator"},
	Purge:         {Purge, set(job.Done, job.Dead), set(job.None), "operator, clock"},
}

// Allowed reports whether the verb may be applied in the state at all.
func Allowed(v Verb, from job.State) bool { return transitions[v].from.has(from) }

// Leads reports whether the verb may lead from one state to the other.
func Leads(v Verb, from, to job.State) bool {
	return transitions[v].from.has(from) && transitions[v].to.has(to)
}

// Markdown writes the transition table for docs/protocol/states.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| Verb | From | To | Note |\n| --- | --- | --- | --- |\n")
	for _, r := range transitions {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.verb, r.from, r.to, r.note)
	}
	return b.String()
}

func wrongState(v Verb, from job.State) *job.Error {
	return job.Errorf(job.WrongState, "cannot %s a job that is %s", v, from)
}
