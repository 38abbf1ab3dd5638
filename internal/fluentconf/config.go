// Package fluentconf reads the configuration of Fluent Bit: its classic format,
// its YAML and its command line. It gives sections and entries in their order,
// each with the place where it stands. It knows no plugin and no setting: what
// a key means, and whether it is known, is decided above.
//
// All that is wrong is told at once, and what is wrong is left out, so that the
// rest is read too. What comes from outside (files, environment) is an argument.
package fluentconf

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// The kinds of section that have one name in all forms. Others have the name that
// they are written with, in lower case.
const (
	Service         = "service"
	Input           = "input"
	Filter          = "filter"
	Output          = "output"
	Custom          = "custom"
	Parser          = "parser"
	MultilineParser = "multiline_parser"
)

// Config is a configuration: all its files, in the order in which they are read.
type Config struct {
	Sections []*Section
	Files    []string // as they were found

	root      string            // the folder of the main file
	variables map[string]string // of @SET and env
}

// Section is a part of the configuration with a name, such as [INPUT].
type Section struct {
	Kind    string
	At      Place
	Entries []Entry    // a list in YAML is the same key several times
	Inner   []*Section // groups, and maps in YAML
}

// Entry is a key with its value.
type Entry struct {
	Key     string // in lower case; YAML's camelCase is snake_case
	Value   string // "" = as if it were not there
	Written string // Value before variables were put in: show this one to people, the other may be a secret
	At      Place
}

// Find is the last entry with a key.
func (s *Section) Find(key string) (Entry, bool) {
	for i := len(s.Entries) - 1; i >= 0; i-- {
		if s.Entries[i].Key == key {
			return s.Entries[i], true
		}
	}
	return Entry{}, false
}

func (s *Section) add(at Place, key, value string) {
	s.Entries = append(s.Entries, Entry{Key: key, Written: value, At: at})
}

// Place is where something is written.
type Place struct {
	File string
	Line int // 0 = the whole of it
}

// CommandLine is the place of what flags say.
var CommandLine = Place{File: "command line"}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Bounds of a configuration. They are far above what people write, and low enough
// that no file takes seconds or gigabytes to be refused.
const (
	filesMax     = 1000
	itemsMax     = 100_000 // sections and entries
	lineBytesMax = 32 << 20
	bytesMax     = 64 << 20 // of all files; of all values after variables were put in

	// The library that reads YAML is slow, and much slower than a file grows.
	yamlBytesMax    = 256 << 10
	yamlAllBytesMax = 1 << 20
	yamlKeysMax     = 5000
	yamlAllKeysMax  = 20_000
	yamlDepthMax    = 64
)

// Load reads a main file and what it includes. path may be empty. also are sections
// of the command line, which come last: of two service entries the last one counts.
func Load(path string, also []*Section, from Source, r *Report) *Config {
	l := newLoader(&Config{variables: map[string]string{}}, from, r)
	if path != "" {
		l.config.root = filepath.Dir(path)
		l.main(path, Place{File: path})
	}
	for _, s := range l.config.Sections {
		if (s.Kind == Parser || s.Kind == MultilineParser) && !isYAML(s.At.File) {
			r.Problem(s.At, "[%s] does not belong into the main file; put it into a file of its own and name that one by Parsers_File in [SERVICE]",
				strings.ToUpper(s.Kind))
		}
	}
	l.config.Sections = append(l.config.Sections, also...)
	l.expand(l.config.Sections)
	return l.config
}

// Parsers reads a file of parsers, which Parsers_File of the service section or the flag
// -R names at a place, and gives its sections of the kinds Parser and MultilineParser.
// The variables of the configuration hold in it.
func (c *Config) Parsers(path string, at Place, from Source, r *Report) []*Section {
	sub := &Config{root: c.root, variables: c.variables}
	l := newLoader(sub, from, r)
	l.missing = "; take this out if all parsers that you use are built in, as those of docs/pipeline.md are"
	l.main(path, at)
	c.Files = append(c.Files, sub.Files...)
	var list []*Section
	for _, s := range sub.Sections {
		if s.Kind == Parser || s.Kind == MultilineParser {
			list = append(list, s)
		} else {
			r.Notice(s.At, "[%s] is not read here: a file of parsers has only [PARSER] and [MULTILINE_PARSER]", strings.ToUpper(short(s.Kind)))
		}
	}
	l.expand(list)
	return list
}

func isYAML(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".yaml" || ext == ".yml"
}

// loader reads the files of one configuration.
type loader struct {
	*Report
	config  *Config
	from    Source
	seen    map[string]string // identity of a file to its name
	items   int
	bytes   int64
	service Place  // of the service section in YAML
	missing string // what else to do when a file is not there
	full    bool   // a bound was met, which is told once

	yamlBytes int64
	keys      int // of YAML
}

func newLoader(c *Config, from Source, r *Report) *loader {
	return &loader{Report: r, config: c, from: from, seen: map[string]string{}}
}

// main reads a file that is looked for as it is named and in the folder of the main
// file. at is who names it.
func (l *loader) main(path string, at Place) {
	l.file(at, path, filepath.Join(l.config.root, path))
}

// glob reads all files that a pattern names, in the order of their names.
func (l *loader) glob(at Place, pattern, folder string) {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(folder, pattern)
	}
	paths, err := l.from.Glob(pattern)
	switch {
	case err != nil:
		l.Problem(at, "%s is no pattern of file names: %s", quote(pattern), err)
	case len(paths) == 0:
		l.Problem(at, "no file has a name like %s; put one there or take the line out", quote(pattern))
	default:
		for _, path := range paths {
			l.file(at, path)
		}
	}
}

// bound tells that a bound is met: once, since all that follows is beyond it too.
func (l *loader) bound(at Place, format string, args ...any) {
	if !l.full {
		l.Problem(at, format, args...)
	}
	l.full = true
}

// file reads the first of the paths at which there is a file.
func (l *loader) file(at Place, paths ...string) {
	if len(l.seen) >= filesMax {
		l.bound(at, "more than %d files are included; put them together", filesMax)
	}
	if l.full {
		return
	}
	var (
		path     string
		text     []byte
		identity string
		err      error
	)
	for _, path = range paths {
		if filepath.IsAbs(paths[0]) {
			path = paths[0]
		}
		most := bytesMax - l.bytes
		if isYAML(path) {
			most = min(most, yamlBytesMax, yamlAllBytesMax-l.yamlBytes)
		}
		if text, identity, err = l.from.Read(path, most); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	switch before, twice := l.seen[identity]; {
	case errors.Is(err, ErrTooLarge):
		l.bound(at, "%s is too large: a file of YAML may have %s, all of them %s, and all files together %s",
			quote(path), bytes(yamlBytesMax), bytes(yamlAllBytesMax), bytes(bytesMax))
		return
	case errors.Is(err, fs.ErrNotExist):
		l.Problem(at, "there is no file %s%s%s", quote(paths[0]), variableInPath(paths[0]), l.missing)
		return
	case err != nil:
		l.Problem(at, "%s cannot be read: %s", quote(path), err)
		return
	case twice:
		l.Problem(at, "%s is read already, as %s; take one of the two out", quote(path), quote(before))
		return
	}
	l.seen[identity] = path
	l.bytes += int64(len(text))
	l.config.Files = append(l.config.Files, path)
	if isYAML(path) {
		l.yamlBytes += int64(len(text))
		l.yaml(path, text)
	} else {
		l.classic(path, string(text))
	}
}

func variableInPath(path string) string {
	if strings.Contains(path, "${") {
		return "; variables are not put into the paths of files, write the path out"
	}
	return ""
}

// item counts a section or an entry and reports whether it may be kept.
func (l *loader) item(at Place) bool {
	if l.items++; l.items > itemsMax {
		l.bound(at, "the configuration has more than %d sections and entries", itemsMax)
	}
	return !l.full
}

// open begins a section.
func (l *loader) open(kind string, at Place) *Section {
	s := &Section{Kind: kind, At: at}
	if l.item(at) {
		l.config.Sections = append(l.config.Sections, s)
	}
	return s
}
