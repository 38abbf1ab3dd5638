// Package plugin holds what inputs, filters and outputs declare: their names and
// properties, with forms, defaults and words, as Fluent Bit has them. It reads
// sections of a configuration into typed values and tells all that is wrong with
// them at once. It runs nothing: an implementation is found by kind and name.
package plugin

import "slices"

// Plugin is an input, a filter or an output, or the service section.
type Plugin struct {
	Kind       string // fluentconf.Input, Filter, Output or Service
	Name       string
	What       string // what it does, in one line
	Properties []Property
	Address    []string // what a path behind the name means, as in http://host:80/path: properties for its parts; one is for the whole of it
}

// Property is a key of a section.
type Property struct {
	Name    string
	Other   []string // other names of it
	Form    Form
	Default string // as it would be written; "" = none
	What    string // one line

	Words       []string // of a Word
	Least, Most float64  // of a number, a size in bytes, a span in seconds; of the parts of Parts
	Many        bool     // it may be there several times
	Required    bool
	Prefix      bool // Name is the beginning of a name

	// Both hold unless the default is written.
	Idle string // why it has no effect here, told as a notice; "" = it has one
	Gone string // why it is refused; "" = it is not
}

// Form is how a value is written.
type Form uint8

// Text is any, Pattern a regular expression. Whole and Number have bounds, and so have Size, a number
// of bytes, and Span, a span of time. Word is one of Words, in any case. List has commas between its parts.
// Parts has blanks between them, the last part is the rest, and a part may stand in quotes. Limit is how
// many retries there are.
const (
	Text Form = iota
	Pattern
	Flag
	Whole
	Number
	Size
	Span
	Word
	List
	Parts
	Limit
)

func (f Form) String() string {
	return [...]string{"text", "regular expression", "on or off", "whole number", "number", "size", "time", "word", "list", "parts", "limit of retries"}[f]
}

// Property finds one by a key, nil if there is none.
func (p *Plugin) Property(key string) *Property {
	for i := range p.Properties {
		q := &p.Properties[i]
		if q.Name == key || slices.Contains(q.Other, key) || q.Prefix && len(key) > len(q.Name) && key[:len(q.Name)] == q.Name {
			return q
		}
	}
	return nil
}

// The rest of this file makes declarations short.

func prop(form Form, name, byDefault, what string) Property {
	return Property{Name: name, Form: form, Default: byDefault, What: what}
}

func text(name, byDefault, what string) Property { return prop(Text, name, byDefault, what) }
func pattern(name, what string) Property         { return prop(Pattern, name, "", what) }

func list(name, byDefault, what string) Property  { return prop(List, name, byDefault, what) }
func onOff(name, byDefault, what string) Property { return prop(Flag, name, byDefault, what) }
func size(name, byDefault, what string) Property {
	return prop(Size, name, byDefault, what).from(0, 1e15)
}

func span(name, byDefault, what string) Property {
	return prop(Span, name, byDefault, what).from(0, 1e9)
}

func whole(name, byDefault string, least, most float64, what string) Property {
	return prop(Whole, name, byDefault, what).from(least, most)
}

func word(name, byDefault, what string, words ...string) Property {
	p := prop(Word, name, byDefault, what)
	p.Words = words
	return p
}

// parts are so many words behind the key, each time that it is there.
func parts(name string, least, most float64, what string) Property {
	return prop(Parts, name, "", what).from(least, most).many()
}

func (p Property) from(least, most float64) Property {
	p.Least, p.Most = least, most
	return p
}

func (p Property) many() Property {
	p.Many = true
	return p
}

func (p Property) required() Property {
	p.Required = true
	return p
}

func (p Property) beginning() Property {
	p.Prefix = true
	return p
}

func (p Property) also(names ...string) Property {
	p.Other = names
	return p
}

func (p Property) idle(why string) Property {
	p.Idle = why
	return p
}

func (p Property) gone(why string) Property {
	p.Gone = why
	return p
}
