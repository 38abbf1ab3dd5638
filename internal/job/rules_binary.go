package job

import (
	"encoding/binary"
	"math"
)

// The stored form of rules, a part of format 1 of a policy: a uvarint of how
// many, then for each a uvarint of the bits below, a byte of what it does, and
// what the bits say, in their order. Lists are led by their length, texts by
// their bytes. Never renumbered.
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

func (rs Rules) appendBinary(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(rs)))
	for i := range rs {
		b = rs[i].appendBinary(b)
	}
	return b
}

func (r *Rule) appendBinary(b []byte) []byte {
	w := &r.When
	own := Retry{Limit: r.Limit, Curve: r.Curve}
	b = binary.AppendUvarint(b, bit(len(w.ErrorTypes) > 0, ruleErrorTypes)|bit(w.Message != "", ruleMessage)|
		bit(len(w.Status) > 0, ruleStatus)|bit(len(w.ExitCode) > 0, ruleExitCode)|
		bit(w.Timeout == Yes, ruleTimeout)|bit(w.Timeout == No, ruleNoTimeout)|
		bit(r.IgnoreRetryAfter, ruleIgnoresRetryAfter)|bit(r.Delay != 0, ruleDelay)|bit(!own.IsZero(), rulePolicy))
	b = append(b, byte(r.Do))
	if n := len(w.ErrorTypes); n > 0 {
		b = binary.AppendUvarint(b, uint64(n))
		for _, text := range w.ErrorTypes {
			b = appendBytes(b, text)
		}
	}
	if w.Message != "" {
		b = appendBytes(b, w.Message)
	}
	b = appendRangesBinary(appendRangesBinary(b, w.Status), w.ExitCode)
	b = appendMillis(b, bit(r.Delay != 0, ruleDelay), r.Delay)
	if !own.IsZero() {
		b = own.AppendBinary(b)
	}
	return b
}

func appendBytes(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendRangesBinary(b []byte, list []Range) []byte {
	if len(list) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, r := range list {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.Lo)), uint64(r.Hi))
	}
	return b
}

func (d *retryDecoder) rules() *Rules {
	n := d.number(RulesMax)
	rules := make(Rules, 0, n)
	for ; n > 0 && !d.bad; n-- {
		rules = append(rules, d.rule())
	}
	return &rules
}

func (d *retryDecoder) rule() (r Rule) {
	policy := d.bits
	defer func() { d.bits = policy }()
	d.bits = d.number(ruleEnd - 1)
	r.Do = Do(d.number(uint64(len(doNames) - 1)))
	d.bad = d.bad || r.Do == DoUnset
	w := &r.When
	if d.has(ruleErrorTypes) {
		for n := d.alternatives(); n > 0; n-- {
			w.ErrorTypes = append(w.ErrorTypes, d.text())
		}
	}
	if d.has(ruleMessage) {
		w.Message = d.text()
	}
	w.Status, w.ExitCode = d.ranges(ruleStatus), d.ranges(ruleExitCode)
	if d.has(ruleTimeout | ruleNoTimeout) {
		d.bad = d.bad || d.has(ruleTimeout) && d.has(ruleNoTimeout)
		w.Timeout = AnswerOf(d.has(ruleTimeout))
	}
	r.IgnoreRetryAfter = d.has(ruleIgnoresRetryAfter)
	r.Delay = d.millis(ruleDelay)
	if d.has(rulePolicy) {
		own, rest, err := DecodeRetry(d.rest)
		only := Retry{Limit: own.Limit, Curve: own.Curve}
		if err != nil || own.IsZero() || own != only {
			d.bad = true
			return r
		}
		r.Limit, r.Curve, d.rest = own.Limit, own.Curve, rest
	}
	return r
}

// alternatives reads the length of a list that is not empty.
func (d *retryDecoder) alternatives() uint64 {
	n := d.number(AlternativesMax)
	d.bad = d.bad || n == 0
	return n
}

// text reads a text that is not empty.
func (d *retryDecoder) text() string {
	n := d.number(TextBytesMax)
	if n == 0 || n > uint64(len(d.rest)) {
		d.bad = true
		return ""
	}
	text := string(d.rest[:n])
	d.rest = d.rest[n:]
	return text
}

func (d *retryDecoder) ranges(bit uint64) (list []Range) {
	if !d.has(bit) {
		return nil
	}
	for n := d.alternatives(); n > 0; n-- {
		list = append(list, Range{uint16(d.number(math.MaxUint16)), uint16(d.number(math.MaxUint16))})
	}
	return list
}
