package fluentconf

import (
	"strings"
)

// Arguments is what a command line in the words of Fluent Bit asks for, without
// what it says about the pipeline, which is in Sections.
type Arguments struct {
	File     string // -c
	Workdir  string // -w
	Parsers  []string
	Sections []*Section // service, plugins and their properties

	DryRun, Help, Schema, Version bool
}

// flag is a flag of the command line.
type flag struct {
	letter byte
	long   string
	value  bool   // it has one
	key    string // of the service section that it sets; "" = it is read by a case of its own
	set    string // what it sets the key to, if it has no value
}

var flags = []flag{
	{'b', "storage_path", true, "storage.path", ""},
	{'c', "config", true, "", ""},
	{'C', "custom", true, "", ""},
	{'d', "daemon", false, "daemon", "on"},
	{'D', "dry-run", false, "", ""},
	{'e', "plugin", true, "", ""},
	{'f', "flush", true, "flush", ""},
	{'F', "filter", true, "", ""},
	{'h', "help", false, "", ""},
	{'H', "http", false, "http_server", "on"},
	{'H', "http_server", false, "http_server", "on"},
	{'i', "input", true, "", ""},
	{'J', "help-json", false, "", ""},
	{'l', "log_file", true, "log_file", ""},
	{'L', "http_listen", true, "http_listen", ""},
	{'m', "match", true, "", ""},
	{'o', "output", true, "", ""},
	{'p', "prop", true, "", ""},
	{'P', "http_port", true, "http_port", ""},
	{'P', "port", true, "http_port", ""},
	{'q', "quiet", false, "log_level", "off"},
	{'R', "parser", true, "", ""},
	{'s', "coro_stack_size", true, "coro_stack_size", ""},
	{'t', "tag", true, "", ""},
	{'T', "sp-task", true, "", ""},
	{'v', "verbose", false, "", ""},
	{'V', "version", false, "", ""},
	{'w', "workdir", true, "", ""},
	{'W', "disable-thread-safety-on-hot-reload", false, "hot_reload.ensure_thread_safety", "off"},
	{'Y', "enable-hot-reload", false, "hot_reload", "on"},
}

// ReadArguments reads a command line without the name of the command. Properties (-p),
// tags (-t) and patterns (-m) belong to the plugin before them.
func ReadArguments(args []string, r *Report) *Arguments {
	a := &arguments{Report: r, service: &Section{Kind: Service, At: CommandLine}}
	for a.rest = args; len(a.rest) > 0; {
		word := a.rest[0]
		a.rest = a.rest[1:]
		switch name, long := strings.CutPrefix(word, "--"); {
		case long && name != "":
			a.long(name)
		case len(word) > 1 && word[0] == '-' && !long:
			a.short(word[1:])
		default:
			r.Problem(CommandLine, "%s is no flag; an input is -i NAME, an output -o NAME, a file -c FILE", quote(word))
		}
	}
	if len(a.service.Entries) > 0 {
		a.Sections = append(a.Sections, a.service)
	}
	return &a.Arguments
}

type arguments struct {
	Arguments
	*Report
	rest    []string
	service *Section
	last    *Section // the last plugin
	loud    bool     // -v was there
}

func (a *arguments) long(word string) {
	name, value, given := strings.Cut(word, "=")
	for _, f := range flags {
		if f.long != name {
			continue
		}
		if given && !f.value {
			a.Problem(CommandLine, "--%s has no value", name)
		} else {
			a.flag(f, "--"+name, value, given)
		}
		return
	}
	a.Problem(CommandLine, "there is no flag --%s; -h shows all", short(name))
}

// short reads letters: flags without a value, and at most one with a value, which is
// what follows it or the next word.
func (a *arguments) short(letters string) {
	for i := range len(letters) {
		var found *flag
		for j := range flags {
			if flags[j].letter == letters[i] {
				found = &flags[j]
				break
			}
		}
		switch {
		case found == nil:
			a.Problem(CommandLine, "there is no flag -%s; -h shows all", short(letters[i:]))
			return
		case found.value:
			a.flag(*found, "-"+letters[i:i+1], letters[i+1:], i+1 < len(letters))
			return
		}
		a.flag(*found, "-"+letters[i:i+1], "", false)
	}
}

// flag does what a flag says. name is how it was written.
func (a *arguments) flag(f flag, name, value string, given bool) {
	if f.value && !given {
		if len(a.rest) == 0 {
			a.Problem(CommandLine, "%s needs a value behind it", name)
			return
		}
		value, a.rest = a.rest[0], a.rest[1:]
	}
	if f.key != "" {
		if f.set != "" {
			value = f.set
		}
		a.service.add(CommandLine, f.key, value)
		return
	}
	switch f.letter {
	case 'c':
		a.File = value
	case 'C', 'i', 'F', 'o':
		a.last = &Section{Kind: f.long, At: CommandLine}
		a.last.add(CommandLine, "name", value)
		a.Sections = append(a.Sections, a.last)
	case 'D':
		a.DryRun = true
	case 'e', 'T':
		s := &Section{Kind: map[byte]string{'e': "plugins", 'T': "stream_processor"}[f.letter], At: CommandLine}
		s.add(CommandLine, s.Kind, value)
		a.Sections = append(a.Sections, s)
	case 'h':
		a.Help = true
	case 'J':
		a.Schema = true
	case 'm', 'p', 't':
		a.property(f, name, value)
	case 'R':
		a.Parsers = append(a.Parsers, value)
	case 'v':
		level := "debug"
		if a.loud {
			level = "trace"
		}
		a.loud = true
		a.service.add(CommandLine, "log_level", level)
	case 'V':
		a.Version = true
	case 'w':
		a.Workdir = value
	}
}

// property sets one of the last plugin.
func (a *arguments) property(f flag, name, value string) {
	key, written := f.long, f.letter != 'p'
	if !written {
		key, value, written = strings.Cut(value, "=")
	}
	key = strings.ToLower(strings.Trim(key, blanks))
	switch {
	case a.last == nil:
		a.Problem(CommandLine, "%s belongs behind the plugin that it is for: -i NAME, -F NAME or -o NAME", name)
	case !written || key == "":
		a.Problem(CommandLine, "%s must be KEY=VALUE", name)
	case key == "match" && a.last.Kind == Input:
		a.Problem(CommandLine, "an input has no match; write %s behind the filter or the output that it is for", name)
	default:
		a.last.add(CommandLine, key, strings.Trim(value, blanks))
	}
}
