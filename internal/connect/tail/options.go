package tail

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
)

// Options are what a tail reads, and how. Their names are those of the original.
type Options struct {
	Path        []string // globs
	ExcludePath []string // globs in which * stands for slashes too
	Tag         string   // * is the path with dots; <name> is a group of TagRegex
	TagRegex    string   // tried on the path
	Key         string   // of the line; "" = log
	PathKey     string   // "" = none
	OffsetKey   string   // of where the line begins; "" = none

	ReadFromHead   bool // what is there at the first start is read from its beginning
	SkipNewContent bool // what appears later is read from its end (read_newly_discovered_files_from_head off)

	RefreshInterval time.Duration // between two looks for new files; 0 = 60 s
	RotateWait      time.Duration // how long a file is read on that is no longer at its path
	IgnoreOlder     time.Duration // files that were not written to for so long are left; 0 = none

	BufferChunkSize int // bytes read at once, at least; 0 = as many as is fast
	BufferMaxSize   int // bytes of the longest line; 0 = 32768

	SkipLongLines     bool
	TruncateLongLines bool
	SkipEmptyLines    bool
	ExitOnEOF         bool // end when all is read

	// Lines makes the events of one file; nil makes each line one field of an event.
	Lines          func() connect.Lines
	MultilineFlush time.Duration // how long lines wait for more of them; 0 = 4 s

	Now func() time.Time
	Log *slog.Logger // nil = nothing is said
}

// Defaults of the original, and the bounds of what is asked for.
const (
	defaultKey     = "log"
	defaultRefresh = time.Minute
	defaultFlush   = 4 * time.Second
	defaultLineMax = 32768
	lineMaxMost    = 256 << 20
)

// New makes a source. The error names all options that are wrong.
func New(o Options) (*Source, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(o.Path) == 0 {
		fault("path: it is not set; name the files to read, such as /var/log/*.log")
	}
	for _, p := range o.Path {
		if _, err := filepath.Match(p, ""); err != nil || p == "" {
			fault("path: %q is no pattern of files; [ needs a ] behind it", p)
		}
	}
	for _, p := range o.ExcludePath {
		if _, err := filepath.Match(p, ""); err != nil || p == "" {
			fault("exclude_path: %q is no pattern of files; [ needs a ] behind it", p)
		}
	}
	s := &Source{o: o, every: lookEvery}
	var err error
	if s.tagRegex, err = tagRegexOf(o.TagRegex); err != nil {
		fault("tag_regex: %w", err)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{
		{"refresh_interval", &s.o.RefreshInterval, defaultRefresh},
		{"rotate_wait", &s.o.RotateWait, 0},
		{"ignore_older", &s.o.IgnoreOlder, 0},
		{"multiline_flush", &s.o.MultilineFlush, defaultFlush},
	} {
		if *d.value < 0 {
			fault("%s: %v is less than nothing; give a time of 0 or more", d.name, *d.value)
		} else if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if o.BufferChunkSize < 0 || o.BufferChunkSize > lineMaxMost {
		fault("buffer_chunk_size: %d bytes is not between 0 and %d", o.BufferChunkSize, lineMaxMost)
	}
	if s.o.BufferMaxSize == 0 {
		s.o.BufferMaxSize = max(defaultLineMax, o.BufferChunkSize)
	} else if o.BufferMaxSize < max(1, o.BufferChunkSize) || o.BufferMaxSize > lineMaxMost {
		fault("buffer_max_size: %d bytes is not between buffer_chunk_size (%d) and %d", o.BufferMaxSize, o.BufferChunkSize, lineMaxMost)
	}
	if s.o.Log == nil {
		s.o.Log = slog.New(slog.DiscardHandler)
	}
	if s.o.Key == "" {
		s.o.Key = defaultKey
	}
	return s, errors.Join(faults...)
}

// tagRegexOf reads a pattern, with slashes around it or without; nil = none.
func tagRegexOf(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > 1 && text[0] == '/' && text[len(text)-1] == '/' {
		text = text[1 : len(text)-1]
	}
	return regexp.Compile(text)
}

// excluded reports whether a path is one that shall not be read.
func (s *Source) excluded(path string) bool {
	flat := strings.NewReplacer("/", "\x00")
	for _, p := range s.o.ExcludePath {
		if ok, _ := filepath.Match(flat.Replace(p), flat.Replace(path)); ok { // the pattern was tried by New
			return true
		}
	}
	return false
}

// tagOf is the tag of the records of a file.
func (s *Source) tagOf(path string) string {
	tag := s.o.Tag
	if s.tagRegex != nil {
		found := s.tagRegex.FindStringSubmatch(path)
		for i, name := range s.tagRegex.SubexpNames() {
			if name != "" && found != nil {
				tag = strings.ReplaceAll(tag, "<"+name+">", found[i])
			}
		}
	}
	dots := strings.ReplaceAll(strings.TrimPrefix(filepath.ToSlash(path), "/"), "/", ".")
	return strings.ReplaceAll(tag, "*", dots)
}
