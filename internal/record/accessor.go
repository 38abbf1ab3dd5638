package record

import (
	"fmt"
	"strconv"
	"strings"
)

// Path says where a value is in a body: the record accessor `$a['b'][0]`, or a
// plain key.
type Path struct {
	text  string
	key   string
	steps []step
}

// step is what stands between brackets: a key, or a place in an array.
type step struct {
	key   string
	index int // -1 = key
}

// ParsePath reads a record accessor: `$key`, `$key['a']['b'][0]`, or the same
// without the dollar. What begins without one and has no such brackets behind
// it is a key as a whole.
func ParsePath(text string) (Path, error) {
	name, dollar := strings.CutPrefix(text, "$")
	p := Path{text: text}
	var rest string
	var err error
	p.key, rest = name, ""
	if i := strings.IndexByte(name, '['); i >= 0 {
		p.key, rest = name[:i], name[i:]
	}
	if p.steps, rest, err = parseSteps(rest); err == nil && rest != "" {
		err = fmt.Errorf("%q stands behind the last bracket", rest)
	}
	switch {
	case err != nil && !dollar:
		return Path{text: text, key: text}, nil
	case err != nil:
		return Path{}, fmt.Errorf("the record accessor %q: %w; write $key['a'][0]", text, err)
	case p.key == "":
		return Path{}, fmt.Errorf("the record accessor %q names no key; write $key['a'][0]", text)
	}
	return p, nil
}

// parseSteps reads the brackets at the beginning of a text and returns what follows.
func parseSteps(text string) (steps []step, rest string, err error) {
	for strings.HasPrefix(text, "[") {
		inside := text[1:]
		if inside == "" || inside[0] != '\'' && inside[0] != '"' {
			number, rest, ok := strings.Cut(inside, "]")
			index, err := strconv.ParseUint(number, 10, 31)
			if !ok || err != nil {
				return nil, "", fmt.Errorf("%q is neither a place in an array nor a key in quotes", text)
			}
			steps, text = append(steps, step{index: int(index)}), rest
			continue
		}
		key, rest, ok := strings.Cut(inside[1:], inside[:1]+"]")
		if !ok {
			return nil, "", fmt.Errorf("%q has no end", text)
		}
		steps, text = append(steps, step{key: key, index: -1}), rest
	}
	return steps, text, nil
}

// String is the path as it was given.
func (p Path) String() string { return p.text }

// Key is the first key of the path.
func (p Path) Key() string { return p.key }

// Nested reports whether the path goes below the body's own keys.
func (p Path) Nested() bool { return len(p.steps) > 0 }

// Find returns the raw value in a raw body, or nil.
func (p Path) Find(body []byte) []byte {
	return p.descend(member(body, p.key))
}

// FindIn returns the raw value in a parsed body, or nil.
func (p Path) FindIn(b Body) []byte {
	if i := b.Index(p.key); i >= 0 {
		return p.descend(b[i].Value)
	}
	return nil
}

func (p Path) descend(raw []byte) []byte {
	for _, s := range p.steps {
		if raw == nil {
			return nil
		}
		if s.index < 0 {
			raw = member(raw, s.key)
		} else {
			raw = element(raw, s.index)
		}
	}
	return raw
}

// member returns the raw value of a key of a raw map, the last if it stands
// there twice, or nil.
func member(raw []byte, key string) (value []byte) {
	k, at, n := head(raw, 0)
	if k != kindMap {
		return nil
	}
	for range n {
		kk, size, length := head(raw, at)
		text := at + size
		end, err := skip(raw, at)
		if err != nil {
			return value
		}
		if at, err = skip(raw, end); err != nil {
			return value
		}
		if (kk == kindStr || kk == kindBin) && string(raw[text:text+length]) == key {
			value = raw[end:at:at]
		}
	}
	return value
}

// element returns one raw value of a raw array, or nil.
func element(raw []byte, index int) []byte {
	k, at, n := head(raw, 0)
	if k != kindArray || index >= n {
		return nil
	}
	for i := 0; ; i++ {
		end, err := skip(raw, at)
		if err != nil {
			return nil
		}
		if i == index {
			return raw[at:end:end]
		}
		at = end
	}
}

// AppendPlain appends a raw value as people read it: a text without quotes,
// all else as JSON.
func AppendPlain(dst, raw []byte) []byte {
	if text, ok := Text(raw); ok {
		return append(dst, text...)
	}
	return AppendJSON(dst, raw, false)
}

// Template is a text with places that are filled in from a record: `$key['a']`,
// `$TAG`, `$TAG[0]` (a part of the tag between dots) and `$0` to `$9` (what a
// regular expression found). A key ends at a dot, a comma, a space, a quote, a
// bracket and a dollar.
type Template struct {
	parts []part
}

// part is a piece of a template, in which one of these is given.
type part struct {
	literal string
	path    *Path
	tag     bool
	tagPart int // 1 = $TAG[0]
	found   int // 1 = $0
}

// ParseTemplate reads a template.
func ParseTemplate(text string) (Template, error) {
	var t Template
	for left := text; left != ""; {
		literal, rest, dollar := strings.Cut(left, "$")
		if literal != "" {
			t.parts = append(t.parts, part{literal: literal})
		}
		if !dollar {
			break
		}
		var err error
		var p part
		if p, left, err = parsePlace(rest); err != nil {
			return Template{}, fmt.Errorf("the template %q: %w", text, err)
		}
		t.parts = append(t.parts, p)
	}
	return t, nil
}

// parsePlace reads what follows a dollar and returns what stands behind it.
func parsePlace(text string) (p part, rest string, err error) {
	if text != "" && text[0] >= '0' && text[0] <= '9' {
		return part{found: int(text[0]-'0') + 1}, text[1:], nil
	}
	end := strings.IndexAny(text, ".,\"' []$")
	if end < 0 {
		end = len(text)
	}
	if end == 0 {
		return part{literal: "$"}, text, nil
	}
	path := Path{text: text, key: text[:end]}
	if path.steps, rest, err = parseSteps(text[end:]); err != nil {
		return part{}, text, err
	}
	path.text = "$" + text[:len(text)-len(rest)]
	switch {
	case path.key != "TAG" || len(path.steps) > 1:
		return part{path: &path}, rest, nil
	case len(path.steps) == 0:
		return part{tag: true}, rest, nil
	case path.steps[0].index >= 0:
		return part{tagPart: path.steps[0].index + 1}, rest, nil
	}
	return part{path: &path}, rest, nil
}

// Fixed returns the text of a template without places.
func (t Template) Fixed() (text string, ok bool) {
	for _, p := range t.parts {
		if p.literal == "" {
			return "", false
		}
		text += p.literal
	}
	return text, true
}

// Append appends the text of the template for a record. A place for which there
// is nothing stays empty, and all is false. find gives $0 to $9 and may be nil.
func (t Template) Append(dst []byte, tag string, body []byte, find func(n int) []byte) (out []byte, all bool) {
	all = true
	for _, p := range t.parts {
		var value []byte
		switch {
		case p.literal != "":
			dst = append(dst, p.literal...)
			continue
		case p.tag:
			dst = append(dst, tag...)
			continue
		case p.tagPart > 0:
			text, ok := tagPart(tag, p.tagPart-1)
			dst, all = append(dst, text...), all && ok
			continue
		case p.found > 0:
			if find != nil {
				value = find(p.found - 1)
			}
			dst = append(dst, value...)
		default:
			if value = p.path.Find(body); value != nil {
				dst = AppendPlain(dst, value)
			}
		}
		all = all && value != nil
	}
	return dst, all
}

// tagPart is one of the parts between the dots of a tag.
func tagPart(tag string, index int) (string, bool) {
	for ; index > 0; index-- {
		_, rest, ok := strings.Cut(tag, ".")
		if !ok {
			return "", false
		}
		tag = rest
	}
	first, _, _ := strings.Cut(tag, ".")
	return first, true
}
