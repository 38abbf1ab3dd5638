package fluentconf

import "strings"

const blanks = " \t\v\f\r"

// classic reads a file of the classic format. Its first entry says how far all its
// entries are indented. Other than in the original that may be not at all: there the
// first letter of each key would be lost. Twice as far is allowed, as there.
type classic struct {
	*loader
	file    string
	section *Section
	group   *Section // of section; nil = none is open

	indent string
	fixed  bool // indent is known
	astray bool // the entry before was indented wrongly: told once for a run of them
	lost   bool // an entry before the first section was told
}

func (l *loader) classic(file, text string) {
	c := &classic{loader: l, file: file}
	text = strings.TrimPrefix(text, "\ufeff")
	if i := strings.IndexByte(text, 0); i >= 0 {
		l.Problem(Place{file, 1 + strings.Count(text[:i], "\n")}, "is not text: there is a byte with the value 0")
		return
	}
	for n := 1; text != "" && !l.full; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		c.line(Place{file, n}, strings.TrimRight(line, blanks))
	}
}

func (c *classic) line(at Place, line string) {
	body := strings.TrimLeft(line, blanks)
	switch {
	case body == "" || body[0] == '#':
	case len(line) > lineBytesMax:
		c.Problem(at, "the line is longer than %s", bytes(lineBytesMax))
	case line[0] == '@':
		c.directive(at, line)
	case line[0] == '[':
		c.heading(at, line)
	default:
		c.entry(at, line[:len(line)-len(body)], body)
	}
}

func (c *classic) directive(at Place, line string) {
	word, rest := line, ""
	if i := strings.IndexAny(line, blanks); i >= 0 {
		word, rest = line[:i], strings.Trim(line[i:], blanks)
	}
	switch strings.ToLower(word) {
	case "@set":
		name, value, found := strings.Cut(rest, "=")
		if name = strings.Trim(name, blanks); !found || name == "" {
			c.Problem(at, "@SET needs a name and a value: @SET name=value")
		} else if c.item(at) {
			c.config.variables[name] = strings.Trim(value, blanks)
		}
	case "@include":
		switch {
		case rest == "":
			c.Problem(at, "@INCLUDE needs the path of a file: @INCLUDE inputs.conf")
		case strings.Contains(rest, "*"):
			c.glob(at, rest, c.config.root)
		default:
			c.main(rest, at)
		}
	default:
		c.Problem(at, "%s is unknown; lines with @ are @SET name=value and @INCLUDE path", quote(word))
	}
}

func (c *classic) heading(at Place, line string) {
	name, rest, closed := strings.Cut(line[1:], "]")
	c.group, c.astray = nil, false
	switch name = strings.ToLower(strings.Trim(name, blanks)); {
	case !closed:
		c.Problem(at, "the name of the section has no end; close it with ]")
		c.section = &Section{}
		return
	case name == "":
		c.Problem(at, "the section has no name; write for example [INPUT]")
		c.section = &Section{}
		return
	case name == Input+"s", name == Filter+"s", name == Output+"s", name == Custom+"s":
		name = strings.TrimSuffix(name, "s")
	}
	if rest = strings.Trim(rest, blanks); rest != "" && rest[0] != '#' {
		c.Notice(at, "%s after the name of the section is not read; entries begin on the next line", quote(rest))
	}
	c.section = c.open(name, at)
}

func (c *classic) entry(at Place, indent, body string) {
	if !c.fixed {
		c.indent, c.fixed = indent, true
	}
	switch {
	case indent == c.indent:
		c.group, c.astray = nil, false
	case indent == c.indent+c.indent:
		c.astray = false
	case !c.astray:
		c.astray = true
		c.Problem(at, "is indented by %s, the first entry of the file by %s; indent all entries alike", width(indent), width(c.indent))
	}
	if c.section == nil {
		if !c.lost {
			c.Problem(at, "stands before the first section; write a line such as [SERVICE] or [INPUT] above it")
		}
		c.lost = true
		return
	}
	if body[0] == '[' {
		c.openGroup(at, body)
		return
	}
	key, value, found := strings.Cut(body, " ")
	switch key = strings.Trim(key, blanks); {
	case strings.ContainsAny(key, blanks):
		c.Problem(at, "%s: a tab does not end a key; write a space", quote(key))
	case !found:
		c.Problem(at, "%s has no value; write one behind it, or take the line out", quote(key))
	case strings.EqualFold(key, "@SET") || strings.EqualFold(key, "@INCLUDE"):
		c.Problem(at, "%s must stand at the beginning of its line", key)
	case c.item(at):
		s := c.section
		if c.group != nil {
			s = c.group
		}
		s.add(at, strings.ToLower(key), strings.Trim(value, blanks))
	}
}

func (c *classic) openGroup(at Place, body string) {
	name, _, closed := strings.Cut(body[1:], "]")
	if name = strings.ToLower(strings.Trim(name, blanks)); !closed || name == "" {
		c.Problem(at, "the group needs a name in brackets, such as [PROCESSORS]")
	}
	c.group = &Section{Kind: name, At: at}
	if closed && name != "" && c.item(at) {
		c.section.Inner = append(c.section.Inner, c.group)
	}
}

// width says in words how far a line is indented.
func width(indent string) string {
	spaces, tabs := strings.Count(indent, " "), strings.Count(indent, "\t")
	switch {
	case indent == "":
		return "nothing"
	case tabs == 0:
		return count(spaces, "space")
	case spaces == 0:
		return count(tabs, "tab")
	}
	return count(spaces, "space") + " and " + count(tabs, "tab")
}
