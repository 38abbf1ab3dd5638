package plugin

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/notation"
	"github.com/reprisehq/reprise/internal/spell"
)

// Catalog is the plugins that there are.
type Catalog struct{ plugins []*Plugin }

// NewCatalog makes one of declarations. It panics if two have one name.
func NewCatalog(lists ...[]Plugin) *Catalog {
	c := &Catalog{}
	for _, list := range lists {
		for i := range list {
			p := &list[i]
			if c.Find(p.Kind, p.Name) != nil {
				panic(fmt.Sprintf("plugin: %s %s is declared twice", p.Kind, p.Name))
			}
			c.plugins = append(c.plugins, p)
		}
	}
	return c
}

// All is the catalog of this package.
func All() *Catalog { return NewCatalog(Inputs(), Filters(), Outputs()) }

// Find finds a plugin, nil if there is none. Case does not matter.
func (c *Catalog) Find(kind, name string) *Plugin {
	for _, p := range c.plugins {
		if p.Kind == kind && strings.EqualFold(p.Name, name) {
			return p
		}
	}
	return nil
}

// Plugins are those of a kind.
func (c *Catalog) Plugins(kind string) (list []*Plugin) {
	for _, p := range c.plugins {
		if p.Kind == kind {
			list = append(list, p)
		}
	}
	return list
}

// Read reads a section into values. It tells all that is wrong with it, and gives nil if
// the plugin is not there. Values with problems are not to be used.
func (c *Catalog) Read(s *fluentconf.Section, r *fluentconf.Report) *Values {
	named, _ := s.Find("name")
	name, address, _ := strings.Cut(named.Value, "://")
	if name == "" {
		r.Problem(s.At, "this %s has no name; write one, such as Name %s", s.Kind, c.Plugins(s.Kind)[0].Name)
		return nil
	}
	p := c.Find(s.Kind, name)
	if p == nil {
		r.Problem(named.At, "%s", c.missing(s.Kind, name))
		return nil
	}
	rd := &reader{Report: r, plugin: p, what: p.Kind + " " + p.Name}
	entries := slices.Clone(s.Entries)
	if address != "" {
		entries = append(rd.address(named, address, s), entries...)
	}
	v := rd.read(s.At, entries)
	for _, inner := range s.Inner {
		r.Problem(inner.At, "%s", noInner(inner.Kind))
	}
	return v
}

// missing says that a plugin is not there, and what to do.
func (c *Catalog) missing(kind, name string) string {
	if o := elsewhere(kind, name); o != nil {
		return fmt.Sprintf("the %s %s of Fluent Bit is not here; %s", kind, strings.ToLower(name), o.Instead)
	}
	var names []string
	for _, p := range c.Plugins(kind) {
		names = append(names, p.Name)
	}
	if hint := spell.Hint(name, names); hint != "" {
		return fmt.Sprintf("there is no %s %s%s", kind, notation.Quote(name), hint)
	}
	return fmt.Sprintf("there is no %s %s; there are %s", kind, notation.Quote(name), strings.Join(names, ", "))
}

func noInner(kind string) string {
	switch kind {
	case "processors":
		return "processors are not here; write them as filters, which see the records of the tags that they match"
	case "routes":
		return "routes are not here; give the input a tag and each output the match for it"
	}
	return fmt.Sprintf("%s has keys below it, which no property here has; write one value", notation.Quote(kind))
}

// reader reads one section.
type reader struct {
	*fluentconf.Report
	plugin  *Plugin
	what    string // input tail
	lenient bool   // the service section: what is unknown is a notice, and of two values the last one counts
}

func (rd *reader) read(at fluentconf.Place, entries []fluentconf.Entry) *Values {
	v := &Values{Plugin: rd.plugin, At: at, asked: map[string]bool{}}
	first := map[string]fluentconf.Place{}
	for _, e := range entries {
		key := e.Key
		p := rd.plugin.Property(key)
		if p != nil && !p.Prefix {
			key = p.Name
		}
		before, twice := first[key]
		if twice && key == "name" || p != nil && twice && !p.Many && p.Form != List && !rd.lenient {
			rd.Problem(e.At, "%s is there twice, first at %s; leave one", e.Key, before)
			continue
		}
		if e.Value != "" {
			first[key] = e.At
		}
		switch {
		case key == "name" && !rd.lenient:
		case p == nil:
			rd.unknown(e)
		case e.Value == "":
			rd.Notice(e.At, "%s is empty, which is the same as leaving it out", e.Key)
		default:
			rd.setting(v, p, key, e)
		}
	}
	for i := range rd.plugin.Properties {
		p := &rd.plugin.Properties[i]
		if p.Required && first[p.Name] == (fluentconf.Place{}) {
			rd.Problem(at, "%s needs %s: %s", rd.what, p.Name, p.What)
		}
	}
	return v
}

func (rd *reader) setting(v *Values, p *Property, key string, e fluentconf.Entry) {
	parsed, err := p.parse(e.Value)
	switch {
	case err != nil:
		rd.Problem(e.At, "%s: %s", e.Key, err)
		return
	case p.Gone != "" && !p.isDefault(parsed):
		rd.Problem(e.At, "%s is not here: %s", e.Key, p.Gone)
		return
	case p.Idle != "" && !p.isDefault(parsed):
		rd.Notice(e.At, "%s has no effect here: %s", e.Key, p.Idle)
	}
	v.settings = append(v.settings, Setting{key, e.Value, e.At, parsed})
}

func (rd *reader) unknown(e fluentconf.Entry) {
	var names []string
	for _, p := range rd.plugin.Properties {
		names = append(names, p.Name)
	}
	hint := spell.Hint(e.Key, names)
	if rd.lenient {
		rd.Notice(e.At, "%s is unknown and has no effect%s", notation.Quote(e.Key), hint)
		return
	}
	rd.Problem(e.At, "%s has no property %s%s", rd.what, notation.Quote(e.Key), cmp.Or(hint, "; take it out"))
}

// address reads what stands behind the name: http://host:80/path. What the section says itself counts more.
func (rd *reader) address(named fluentconf.Entry, rest string, s *fluentconf.Section) (entries []fluentconf.Entry) {
	u, err := url.Parse("x://" + rest)
	if err != nil || u.User != nil || rd.plugin.Property("port") == nil {
		rd.Problem(named.At, "%s must be %s, or %s://host:port/path if the %s has these properties", notation.Quote(named.Value), rd.plugin.Name, rd.plugin.Name, s.Kind)
		return nil
	}
	add := func(key, value string) {
		if _, written := s.Find(key); value != "" && !written {
			entries = append(entries, fluentconf.Entry{Key: key, Value: value, Written: value, At: named.At})
		}
	}
	add("host", u.Hostname())
	add("port", u.Port())
	path := strings.TrimPrefix(u.RequestURI(), "/")
	switch names := rd.plugin.Address; {
	case path == "":
	case len(names) == 0:
		rd.Problem(named.At, "%s has no path; take %s out", rd.what, notation.Quote(path))
	case len(names) == 1:
		add(names[0], "/"+path)
	default:
		for i, part := range strings.SplitN(path, "/", len(names)) {
			add(names[i], part)
		}
	}
	return entries
}
