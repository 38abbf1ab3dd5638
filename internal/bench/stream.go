package bench

import "bytes"

// jobIDBytes is the length of every job id on the wire.
const jobIDBytes = 25

// sequenceDigits is the width of the number that each payload carries.
const sequenceDigits = 16

// stream reads a take stream line by line.
type stream struct {
	body  body
	rest  []byte // decoded, not yet handed out
	carry []byte // a line that began in an earlier piece
}

// next returns the next job, without its line end, skipping heartbeats. It is
// valid until the next call.
func (s *stream) next() ([]byte, error) {
	started := false // the carry holds the start of the line we are looking for
	for {
		end := bytes.IndexByte(s.rest, '\n')
		if end < 0 {
			if !started {
				s.carry = s.carry[:0]
			}
			s.carry = append(s.carry, s.rest...)
			started = len(s.carry) > 0
			var err error
			if s.rest, err = s.body.next(); err != nil {
				s.rest = nil
				return nil, err
			}
			continue
		}
		line := s.rest[:end]
		s.rest = s.rest[end+1:]
		if started {
			s.carry = append(s.carry, line...)
			line = s.carry
			started = false
		}
		if len(line) > 0 {
			return line, nil
		}
	}
}

// lineID finds the id of a job. It is the first field on the wire; a server
// that orders fields otherwise costs a search.
func lineID(line []byte) (id []byte, ok bool) {
	const first, key = `{"id":"`, `"id":"`
	at := len(first)
	if !bytes.HasPrefix(line, []byte(first)) {
		if at = bytes.Index(line, []byte(key)); at < 0 {
			return nil, false
		}
		at += len(key)
	}
	if len(line) <= at+jobIDBytes || line[at+jobIDBytes] != '"' {
		return nil, false
	}
	return line[at : at+jobIDBytes], true
}

// lineSequence finds the number in the payload of a job that this package
// enqueued.
func lineSequence(line []byte) (int64, bool) {
	const key = `"seq":"`
	at := bytes.Index(line, []byte(key))
	if at < 0 || len(line) < at+len(key)+sequenceDigits {
		return 0, false
	}
	at += len(key)
	var n int64
	for _, c := range line[at : at+sequenceDigits] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// lineAttempts finds how often a job has failed.
func lineAttempts(line []byte) (int, bool) {
	const key = `"attempts":`
	at := bytes.LastIndex(line, []byte(key))
	if at < 0 {
		return 0, false
	}
	at += len(key)
	n, digits := 0, 0
	for ; at < len(line) && line[at] >= '0' && line[at] <= '9' && digits < 9; at++ {
		n = n*10 + int(line[at]-'0')
		digits++
	}
	return n, digits > 0
}
