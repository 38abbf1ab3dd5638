package pipeline

import "strings"

// Matches reports whether a tag fits a pattern of Match: `*` stands for any text, the empty
// one as well; all else for itself, from the first to the last character.
func Matches(pattern, tag string) bool {
	before, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == tag
	}
	if !strings.HasPrefix(tag, before) {
		return false
	}
	tag = tag[len(before):]
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(tag, part)
		}
		at := strings.Index(tag, part)
		if at < 0 {
			return false
		}
		tag, rest = tag[at+len(part):], next
	}
}
