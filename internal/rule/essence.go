package rule

import (
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// Essence is what is left of a message when all that changes from job to job
// is taken out. It looks at the first 4 KiB, once, from left to right:
//
//   - a text in quotes (' " ` and Ruby's `x') becomes "";
//   - a word with a digit becomes #, with two exceptions: of letters before
//     nothing but digits the letters stay (user42 is user#), unless all of it
//     could be hexadecimal. A UUID, 0x1f, -1.5e3 and 1,234.5 are one #;
//   - what stands between two # and only joins them goes (. , : / - + T _ and
//     blanks), and so do names of days and months, AM, PM, UTC, GMT and units
//     beside one: so every way to write a time or an address is one #;
//   - white space becomes one blank.
//
// Letters keep their case. The result is never longer than 4 KiB.
func Essence(message string) string {
	cut := len(message) > printMessageMax
	if cut {
		message = message[:printMessageMax]
	}
	s := essence{in: message, cut: cut, out: make([]byte, 0, len(message))}
	for s.at < len(s.in) {
		s.step()
	}
	return strings.TrimRight(string(s.out), " ")
}

// essence is one pass over a message.
type essence struct {
	in  string
	cut bool // there was more of it
	at  int
	out []byte
	// numberEnd is where out stood behind the latest #, and has whether nothing
	// but joiners came since.
	numberEnd int
	has       bool
	unclosed  [128]bool // quotes that have no end
}

func (s *essence) step() {
	c := s.in[s.at]
	switch {
	case isQuote(c) && (s.at == 0 || !isWord(s.in[s.at-1])) && s.quoted():
	case isWord(c):
		s.word()
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		if n := len(s.out); n > 0 && s.out[n-1] != ' ' {
			s.out = append(s.out, ' ')
		}
		s.at++
	default:
		s.out = append(s.out, c)
		s.has = s.has && strings.IndexByte(".,:/-+_()", c) >= 0
		s.at++
	}
}

// quoted takes a text in quotes. A quote that is not closed is a mark like any
// other, unless its end may have been cut off.
func (s *essence) quoted() bool {
	q := s.in[s.at]
	if s.unclosed[q] {
		return false
	}
	for i := s.at + 1; i < len(s.in); i++ {
		switch {
		case s.in[i] == '\\':
			i++
		case (s.in[i] == q || q == '`' && s.in[i] == '\'') && (i+1 == len(s.in) || !isWord(s.in[i+1])):
			s.at = i + 1
			s.out = append(s.out, `""`...)
			s.has = false
			return true
		}
	}
	if !s.cut {
		s.unclosed[q] = true // so no later one is, and none is looked for again
		return false
	}
	s.at = len(s.in)
	s.out = append(s.out, `""`...)
	return true
}

func (s *essence) word() {
	if n := uuidLen(s.in[s.at:]); n > 0 {
		s.number(n)
		return
	}
	end := s.at
	for end < len(s.in) && isWord(s.in[end]) {
		end++
	}
	w := s.in[s.at:end]
	letters := 0
	for letters < len(w) && !isDigit(w[letters]) {
		letters++
	}
	rest := w[letters:]
	unit := s.has && besideNumbers[w[:letters]]                 // the T in 21T15, the s in 5s
	address := s.has && s.out[len(s.out)-1] == ':' && allHex(w) // a group of an IPv6 address
	switch {
	case address:
		s.number(len(w))
	case unit:
		s.number(len(w))
	case rest == "":
		s.letters(w)
	case letters > 0 && allDigits(rest) && !couldBeHex(w):
		s.letters(w[:letters])
		s.number(len(rest))
	default:
		s.number(len(w))
	}
}

// letters copies a word that stays.
func (s *essence) letters(w string) {
	s.out = append(s.out, w...)
	s.at += len(w)
	s.has = false
}

// number takes n bytes that are or hold a number. With the joiners before it
// it becomes part of the number before those; a sign and the name of a day or
// a month before it belong to it.
func (s *essence) number(n int) {
	s.at += n
	if s.has {
		s.out = s.out[:s.numberEnd]
		return
	}
	if k := len(s.out); k > 0 && (s.out[k-1] == '-' || s.out[k-1] == '+') && (k == 1 || !isWord(s.out[k-2])) {
		s.out = s.out[:k-1]
	}
	for s.dropDate() {
		continue
	}
	s.out = append(s.out, '#')
	s.numberEnd, s.has = len(s.out), true
}

// dropDate takes the name of a day or a month off the end of what is there.
func (s *essence) dropDate() bool {
	end := len(s.out)
	for end > 0 && (s.out[end-1] == ' ' || s.out[end-1] == ',') {
		end--
	}
	start := end
	for start > 0 && isWord(s.out[start-1]) {
		start--
	}
	if start == end || !dates[string(s.out[start:end])] {
		return false
	}
	s.out = s.out[:start]
	return true
}

// dates are the names that stand before a number in a date, besideNumbers the
// words that go where they follow one.
var dates, besideNumbers = func() (map[string]bool, map[string]bool) {
	names := map[string]bool{}
	for _, w := range strings.Fields("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec January February March April June July " +
		"August September October November December Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday") {
		names[w] = true
	}
	all := map[string]bool{}
	for w := range names {
		all[w] = true
	}
	for _, w := range strings.Fields("T Z AM PM am pm UTC GMT CET CEST EST EDT PST PDT m ns us ms s h") {
		all[w] = true
	}
	return names, all
}()

// uuidLen is the length of a UUID at the start of s, 0 if there is none.
func uuidLen(s string) int {
	const shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(s) < len(shape) {
		return 0
	}
	for i := range len(shape) {
		if shape[i] == '-' && s[i] != '-' || shape[i] == 'x' && !isHex(s[i]) {
			return 0
		}
	}
	if len(s) > len(shape) && isWord(s[len(shape)]) {
		return 0
	}
	return len(shape)
}

// couldBeHex: at least four hexadecimal characters, of which some are digits.
func couldBeHex(w string) bool { return len(w) >= 4 && allHex(w) }

func allHex(w string) bool {
	for i := range len(w) {
		if !isHex(w[i]) {
			return false
		}
	}
	return true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

func isQuote(c byte) bool { return c == '\'' || c == '"' || c == '`' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// isWord: letters, digits, and every byte of a character outside ASCII.
func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// backtraceMax is how much of a backtrace is kept, and so looked at.
const backtraceMax = job.ErrorBytesMax
