package plugin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/fluentconf"
)

// Setting is a property that is written in a section.
type Setting struct {
	Name  string // of the property; of one that is a beginning, the whole key
	Value string
	At    fluentconf.Place
	value value
}

// Parts are the parts of a value that has several.
func (s Setting) Parts() []string { return s.value.parts }

// Values is a section of a plugin that was read. Asking for a property that the plugin does not
// declare, or in another form, is a mistake of the program and panics. One goroutine asks.
type Values struct {
	Plugin   *Plugin
	At       fluentconf.Place
	settings []Setting
	asked    map[string]bool
}

// Has reports whether a property is written.
func (v *Values) Has(name string) bool {
	v.property(name)
	return slices.ContainsFunc(v.settings, func(s Setting) bool { return s.Name == name })
}

// Place is where a property is written, or else the section.
func (v *Values) Place(name string) fluentconf.Place {
	for _, s := range slices.Backward(v.settings) {
		if s.Name == name {
			return s.At
		}
	}
	return v.At
}

// Text is the value of a Text, a Word or a Pattern.
func (v *Values) Text(name string) string { return v.get(name, Text, Word, Pattern).text }

// Flag is the value of a Flag.
func (v *Values) Flag(name string) bool { return v.get(name, Flag).number == 1 }

// Int is the value of a Whole.
func (v *Values) Int(name string) int64 { return int64(v.get(name, Whole).number) }

// Number is the value of a Number.
func (v *Values) Number(name string) float64 { return v.get(name, Number).number }

// Size is the value of a Size, in bytes.
func (v *Values) Size(name string) int64 { return int64(v.get(name, Size).number) }

// Span is the value of a Span.
func (v *Values) Span(name string) time.Duration { return v.get(name, Span).span }

// Retries is the value of a Limit.
func (v *Values) Retries(name string) Retries { return v.get(name, Limit).retries }

// List is the parts of a List, or the values of a Text or of Parts that may be there several times.
func (v *Values) List(name string) (parts []string) {
	p := v.property(name, List, Text, Parts)
	for _, s := range v.All(name) {
		if p.Form == List {
			parts = append(parts, s.value.parts...)
		} else {
			parts = append(parts, s.Value)
		}
	}
	if parts == nil && p.Default != "" {
		return v.get(name, List).parts
	}
	return parts
}

// All are the settings with these names, in the order in which they are written. The name
// of a property that is a beginning stands for all that begin so.
func (v *Values) All(names ...string) (all []Setting) {
	for _, name := range names {
		v.property(name)
	}
	for _, s := range v.settings {
		if slices.Contains(names, v.Plugin.Property(s.Name).Name) {
			all = append(all, s)
		}
	}
	return all
}

// Unread are the settings that nobody asked for: they have no effect, which is to be told.
func (v *Values) Unread() (all []Setting) {
	for _, s := range v.settings {
		if p := v.Plugin.Property(s.Name); !v.asked[p.Name] && p.Idle == "" && p.Gone == "" {
			all = append(all, s)
		}
	}
	return all
}

// get is the last value that is written, or the default.
func (v *Values) get(name string, forms ...Form) value {
	p := v.property(name, forms...)
	for _, s := range slices.Backward(v.settings) {
		if s.Name == name {
			return s.value
		}
	}
	return p.byDefault()
}

func (v *Values) property(name string, forms ...Form) *Property {
	p := v.Plugin.Property(name)
	if p == nil || p.Name != name || len(forms) > 0 && !slices.Contains(forms, p.Form) {
		panic(fmt.Sprintf("plugin: %s %s declares no %s of this form", v.Plugin.Kind, v.Plugin.Name, name))
	}
	v.asked[name] = true
	return p
}

// byDefault is the value of a property that is not written. That each default can be read is tested.
func (p *Property) byDefault() value {
	if p.Default == "" {
		return value{}
	}
	v, err := p.parse(p.Default)
	if err != nil {
		panic(err)
	}
	return v
}

// isDefault reports whether what is written is what holds anyway.
func (p *Property) isDefault(v value) bool {
	d := p.byDefault()
	return strings.EqualFold(v.text, d.text) && v.number == d.number && v.span == d.span && v.retries == d.retries && slices.Equal(v.parts, d.parts)
}
