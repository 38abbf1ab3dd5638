package job

import (
	"math"

	"github.com/reprisehq/reprise/internal/codec"
)

// The stored form of rules, a part of format 1 of a policy: how many, then for
// each the bits below, a byte of what it does, and what the bits say, in their
// order. Never renumbered.
const (
	ruleErrorTypes = 1 << iota
	ruleMessage
	ruleStatus
	ruleExitCode
	ruleTimeout
	ruleNoTimeout
	ruleIgnoresRetryAfter
	ruleDelay
	rulePolicy // limit and curve, in the stored form of a policy
	ruleEnd
)

func (rs *Rules) fields(f *codec.Fields) {
	list := []Rule(*rs)
	for i := range codec.List(f, &list) {
		r := &list[i]
		r.fields(f)
	}
	if f.Reads() {
		*rs = append(Rules{}, list...)
		f.Refuse(len(list) > RulesMax)
	}
}

func (r *Rule) fields(f *codec.Fields) {
	w := &r.When
	own := Retry{Limit: r.Limit, Curve: r.Curve}
	has := bit(len(w.ErrorTypes) > 0, ruleErrorTypes) | bit(w.Message != "", ruleMessage) |
		bit(len(w.Status) > 0, ruleStatus) | bit(len(w.ExitCode) > 0, ruleExitCode) |
		bit(w.Timeout == Yes, ruleTimeout) | bit(w.Timeout == No, ruleNoTimeout) |
		bit(r.IgnoreRetryAfter, ruleIgnoresRetryAfter) | bit(r.Delay != 0, ruleDelay) | bit(!own.IsZero(), rulePolicy)
	codec.Uint(f, &has, ruleEnd-1)
	codec.Uint(f, &r.Do, uint64(len(doNames)-1))
	f.Refuse(r.Do == DoUnset)
	if has&ruleErrorTypes != 0 {
		for i := range codec.List(f, &w.ErrorTypes) {
			text := &w.ErrorTypes[i]
			textField(f, text)
		}
		f.Refuse(len(w.ErrorTypes) == 0 || len(w.ErrorTypes) > AlternativesMax)
	}
	if has&ruleMessage != 0 {
		textField(f, &w.Message)
	}
	rangesField(f, has&ruleStatus, &w.Status)
	rangesField(f, has&ruleExitCode, &w.ExitCode)
	if f.Reads() {
		if has&(ruleTimeout|ruleNoTimeout) != 0 {
			w.Timeout = AnswerOf(has&ruleTimeout != 0)
		}
		f.Refuse(has&ruleTimeout != 0 && has&ruleNoTimeout != 0)
		r.IgnoreRetryAfter = has&ruleIgnoresRetryAfter != 0
	}
	numberField(f, has&ruleDelay, &r.Delay, MaxMillis)
	if has&rulePolicy != 0 {
		if own.fields(f); f.Reads() {
			r.Limit, r.Curve = own.Limit, own.Curve
			f.Refuse(own.IsZero() || own != Retry{Limit: own.Limit, Curve: own.Curve})
		}
	}
}

// textField is a text that is not empty.
func textField(f *codec.Fields, p *string) {
	f.Text(p)
	f.Refuse(*p == "" || len(*p) > TextBytesMax)
}

func rangesField(f *codec.Fields, set uint64, list *[]Range) {
	if set == 0 {
		return
	}
	for i := range codec.List(f, list) {
		r := &(*list)[i]
		codec.Uint(f, &r.Lo, math.MaxUint16)
		codec.Uint(f, &r.Hi, math.MaxUint16)
	}
	f.Refuse(len(*list) == 0 || len(*list) > AlternativesMax)
}
