package rule

import (
	"slices"
	"strings"
)

// Frames returns the own stack frames of a backtrace that are nearest to the
// failure, at most three, nearest first, without what changes when other lines
// of a file are edited: "file:function" or the name of the function.
//
// A frame is own unless its place says otherwise: the language's own library
// (/usr/lib/python3, /usr/local/go/src, node:internal, java., <internal:),
// or a directory that package managers fill (site-packages, node_modules,
// /gems/, /pkg/mod/, /vendor/). If none is own, the nearest frames of others are
// taken. Python, Go, Ruby, Java, Kotlin, .NET, Node and PHP are read; of any
// other text the first lines are taken, without their numbers (Essence).
func Frames(backtrace string) []string {
	if len(backtrace) > backtraceMax {
		backtrace = backtrace[:backtraceMax]
	}
	var own, all []string
	last := strings.Contains(backtrace, "most recent call last") // Python
	lines := strings.Split(backtrace, "\n")
	for i, line := range lines {
		below := ""
		if i+1 < len(lines) {
			below = lines[i+1]
		}
		f, ok := frameOf(strings.TrimRight(line, "\r"), below)
		if !ok {
			continue
		}
		all = append(all, f.name)
		if !f.foreign() {
			own = append(own, f.name)
		}
		if !last && len(own) == printFramesMax {
			break
		}
	}
	if len(own) == 0 {
		own = all
	}
	if len(own) == 0 {
		return firstLines(lines)
	}
	if last {
		slices.Reverse(own)
	}
	return own[:min(len(own), printFramesMax)]
}

// firstLines are the frames of a backtrace that nobody can read.
func firstLines(lines []string) (list []string) {
	for _, line := range lines {
		if line = Essence(line); line != "" {
			list = append(list, line)
		}
		if len(list) == printFramesMax {
			break
		}
	}
	return list
}

// frame is one line of a backtrace.
type frame struct {
	name  string
	place string // what tells whose it is: a path, or the full name of the function
}

// frameOf reads one line; below is the next, which in Go holds the file.
func frameOf(line, below string) (frame, bool) {
	text := strings.TrimLeft(line, " \t")
	indented := len(text) < len(line)
	switch {
	case text == "":
	case indented && strings.HasPrefix(text, `File "`):
		return pythonFrame(text)
	case indented && strings.HasPrefix(text, "at "):
		return atFrame(text[len("at "):])
	case text[0] == '#':
		return phpFrame(text)
	case strings.HasPrefix(below, "\t") && strings.Contains(below, ".go:"):
		return goFrame(text, below)
	}
	return rubyFrame(strings.TrimPrefix(text, "from "))
}

// pythonFrame reads `File "/app/mail.py", line 12, in send`.
func pythonFrame(text string) (frame, bool) {
	path, rest, ok := strings.Cut(text[len(`File "`):], `"`)
	_, function, named := strings.Cut(rest, ", in ")
	if !ok || !named {
		return frame{}, false
	}
	return frame{base(path) + ":" + function, path}, true
}

// goFrame reads `main.send(0xc000, 0x1)` above `	/app/mail.go:12 +0x1d`.
func goFrame(text, below string) (frame, bool) {
	name := strings.TrimPrefix(text, "created by ")
	name, _, _ = strings.Cut(name, " in goroutine ")
	if end := strings.LastIndexByte(name, '('); end > 0 && strings.HasSuffix(name, ")") {
		name = name[:end]
	}
	if name == "panic" {
		return frame{}, false
	}
	path, _, _ := strings.Cut(strings.TrimLeft(below, "\t "), ":")
	return frame{Essence(name), path}, true
}

// atFrame reads what follows "at": `com.acme.Mail.send(Mail.java:12)` of Java,
// `Acme.Mail.Send(String to) in /app/Mail.cs:line 12` of .NET and
// `Mail.send (/app/mail.js:12:5)` or `/app/mail.js:12:5` of Node.
func atFrame(text string) (frame, bool) {
	if name, path, ok := strings.Cut(text, " in "); ok && strings.Contains(path, ":line ") {
		name, _, _ = strings.Cut(name, "(")
		return frame{Essence(name), name}, true
	}
	if name, path, ok := strings.Cut(text, " ("); ok && strings.HasSuffix(path, ")") { // Node
		name = strings.TrimPrefix(strings.TrimPrefix(name, "async "), "new ")
		return frame{base(withoutLine(path[:len(path)-1])) + ":" + Essence(name), path}, true
	}
	if name, _, ok := strings.Cut(text, "("); ok { // Java; a module may stand before the name
		name, _, _ = strings.Cut(name, "$$") // a class made at run time has another name in each run
		name = name[strings.LastIndexByte(name, '/')+1:]
		return frame{Essence(name), name}, true
	}
	path := strings.TrimPrefix(text, "async ")
	return frame{base(withoutLine(path)), path}, path != ""
}

// phpFrame reads `#0 /app/Mail.php(12): Mail->send()`.
func phpFrame(text string) (frame, bool) {
	_, rest, ok := strings.Cut(text, " ")
	place, function, called := strings.Cut(rest, ": ")
	if !ok || !called {
		return frame{}, false
	}
	path, _, _ := strings.Cut(place, "(")
	function, _, _ = strings.Cut(function, "(")
	return frame{base(path) + ":" + Essence(function), path}, true
}

// rubyFrame reads "/app/mail.rb:12:in 'send'" with any of Ruby's quotes.
func rubyFrame(text string) (frame, bool) {
	place, function, ok := strings.Cut(text, ":in ")
	path := withoutLine(place)
	if !ok || path == place {
		return frame{}, false
	}
	return frame{base(path) + ":" + strings.Trim(function, "'`\" \t"), path}, true
}

// withoutLine takes :12 or :12:5 off a path.
func withoutLine(path string) string {
	for {
		at := strings.LastIndexByte(path, ':')
		if at < 0 || at+1 == len(path) || !allDigits(path[at+1:]) {
			return path
		}
		path = path[:at]
	}
}

// base is the last part of a path, numbers taken out.
func base(path string) string {
	return Essence(path[strings.LastIndexAny(path, `/\`)+1:])
}

// foreignParts stand inside the place of a frame that is not own,
// foreignStarts at its beginning.
var (
	foreignParts = []string{
		"/site-packages/", "/dist-packages/", "/lib/python3", "/lib/python2", "/Lib/",
		"/gems/", "/lib/ruby/", "/pkg/mod/", "/go/src/runtime/", "/usr/local/go/src/", "/usr/lib/go", "/libexec/src/",
		"/vendor/", "node_modules/", "/hostedtoolcache/", "@v",
	}
	foreignStarts = []string{
		"<", "node:", "internal/", "runtime/", "net/http/", "[internal",
		"java.", "javax.", "jakarta.", "jdk.", "sun.", "com.sun.", "kotlin.", "kotlinx.", "scala.", "groovy.",
		"org.springframework.", "org.apache.", "org.hibernate.", "org.junit.", "io.netty.", "reactor.", "com.fasterxml.",
		"System.", "Microsoft.",
	}
)

// foreign reports whether the frame is of a library and not of the user's own
// program.
func (f frame) foreign() bool {
	has := func(part string) bool { return strings.Contains(f.place, part) }
	starts := func(part string) bool { return strings.HasPrefix(f.place, part) }
	return slices.ContainsFunc(foreignParts, has) || slices.ContainsFunc(foreignStarts, starts)
}
