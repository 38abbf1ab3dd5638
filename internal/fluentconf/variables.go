package fluentconf

import "strings"

// expand puts variables into the values of all entries.
func (l *loader) expand(sections []*Section) {
	for _, s := range sections {
		for i := range s.Entries {
			e := &s.Entries[i]
			e.Value = strings.Trim(l.variables(e.At, e.Written), blanks+"\n")
		}
		l.expand(s.Inner)
	}
}

// variables replaces ${NAME} and ${NAME:-default} once: what they stand for is not
// looked through again. What has no end, or no name, stays as it is.
func (l *loader) variables(at Place, text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	var b strings.Builder
	for {
		before, rest, opened := strings.Cut(text, "${")
		inside, after, closed := strings.Cut(rest, "}")
		if !opened || !closed {
			b.WriteString(text)
			break
		}
		value := "${}"
		if inside != "" {
			value = l.variable(at, inside)
		}
		if l.bytes += int64(len(value)); l.bytes > bytesMax {
			l.bound(at, "with its variables the configuration is larger than %s", bytes(bytesMax))
			return ""
		}
		b.WriteString(before)
		b.WriteString(value)
		text = after
	}
	return b.String()
}

// variable is the value of one: that of the configuration stands before that of the environment.
func (l *loader) variable(at Place, inside string) string {
	name, otherwise, hasDefault := strings.Cut(inside, ":-")
	value, found := l.config.variables[name]
	if !found {
		value, found = l.from.Lookup(name)
	}
	if value != "" {
		return value
	}
	if !hasDefault && !found {
		l.Notice(at, "the variable %s is not set, which is the same as an empty one", quote(name))
	}
	return otherwise
}
