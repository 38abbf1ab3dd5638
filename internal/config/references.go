package config

import (
	"errors"
	"strings"
)

// Expand replaces the references in a value, such as ${file:PATH}, by what they
// stand for, and returns those texts too; $${ stands for ${.
func Expand(s string, lookup func(reference string) (string, error)) (out string, secrets []string, err error) {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), secrets, nil
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		reference, rest, closed := strings.Cut(s[i+2:], "}")
		if !closed {
			return "", nil, errors.New("${ is not closed; write $${ for the two characters themselves")
		}
		value, err := lookup(reference)
		if err != nil {
			return "", nil, err
		}
		secrets = append(secrets, value)
		b.WriteString(value)
		s = rest
	}
}

// asWritten is Expand where references are not looked up.
func asWritten(s string) (string, []string, error) { return s, nil, nil }
