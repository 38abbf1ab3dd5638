package config

import (
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/notation"
	"github.com/reprisehq/reprise/internal/spell"
)

// Load works out the configuration: a flag wins over the environment, the
// environment over the file, the file over the default. flags are those of
// AddFlags, environ is as os.Environ gives it, readFile reads the
// configuration file and the files its references name.
//
// The error is Problems: everything that is wrong, not only the first. The
// report is as complete as it can be even then.
func Load(flags *pflag.FlagSet, environ []string, readFile func(string) ([]byte, error)) (Config, Report, error) {
	l := &loader{flags: flags, env: map[string]string{}, readFile: readFile, cfg: Default(), origins: map[string]Origin{}}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		l.env[name] = value
	}
	l.readConfigFile()
	l.defaultRetry()
	for _, s := range settings {
		l.apply(s)
	}
	l.adminListener()
	l.commitMode()
	l.count(l.cfg.Retry, l.leaves[retryPath])
	l.types()
	l.doors()
	l.queues()
	l.crons()
	l.grid()
	l.inboxes()
	l.cluster()
	pipelines(l)
	l.tokens()
	l.egress()
	l.foreign()
	l.keepAsZizq()
	l.strangers()
	l.contradictions()
	l.notices()
	l.report.File = l.cfg.File
	l.list()
	if l.file != nil {
		l.problems = append(l.file.inOrder(), l.problems...)
	}
	return l.cfg, l.report, l.problems.err()
}

// loader is one Load at work.
type loader struct {
	flags    *pflag.FlagSet
	env      map[string]string
	readFile func(string) ([]byte, error)

	cfg        Config
	file       *document        // nil without a configuration file
	leaves     map[string]*node // its values, by path
	fileValues []Value          // what it says of types, doors and queues
	origins    map[string]Origin
	report     Report
	problems   Problems
}

// given is a value as a person wrote it.
type given struct {
	texts  []string
	origin Origin
}

// look finds who decided a setting; ok is false if nobody did.
func (l *loader) look(s setting) (given, bool) {
	if g, ok := l.flag(s.name); ok {
		l.twice(s)
		return g, true
	}
	for _, a := range s.also {
		if g, ok := l.flag(a.name); ok {
			return l.translate(g, a)
		}
	}
	for _, prefix := range []string{envOurs, envZizqs} {
		if g, ok := l.variable(env(prefix, s.name)); ok {
			return g, true
		}
	}
	for _, a := range s.also {
		if g, ok := l.variable(env(envZizqs, a.name)); ok {
			return l.translate(g, a)
		}
	}
	if n := l.leaves[s.yaml]; n != nil {
		return l.inFile(s, n)
	}
	return given{}, false
}

func (l *loader) flag(name string) (given, bool) {
	flag := l.flags.Lookup(name)
	if flag == nil || !flag.Changed {
		return given{}, false
	}
	v, ok := flag.Value.(*flagValue)
	if !ok {
		return given{}, false // a flag of the same name that is not ours
	}
	return given{v.text, Origin{From: FromFlag, At: "--" + name}}, true
}

// kubernetes is what a service of our name makes Kubernetes put into the
// environment of every pod.
var kubernetes = regexp.MustCompile(`^(tcp|udp|sctp)://`)

// variable reads an environment variable; empty is not set.
func (l *loader) variable(name string) (given, bool) {
	text := l.env[name]
	if text == "" {
		return given{}, false
	}
	if kubernetes.MatchString(text) {
		l.notice(slog.LevelDebug, name+" is ignored: Kubernetes set it for a service")
		return given{}, false
	}
	return given{[]string{text}, Origin{From: FromEnvironment, At: name}}, true
}

// inFile reads a value, or a list of them, from the file.
func (l *loader) inFile(s setting, n *node) (given, bool) {
	g := given{origin: l.fileOrigin(n)}
	switch {
	case n.kind == scalarNode:
		g.texts = []string{n.text}
	case n.kind == listNode && s.list:
		if g.texts = l.file.texts(n, s.yaml); g.texts == nil {
			g.texts = []string{""}
		}
	case n.kind == badNode: // said already
		return given{}, false
	case n.kind == nullNode:
		l.file.problem(n.line, s.yaml, "has no value; remove the line to use the default")
		return given{}, false
	default:
		l.file.problem(n.line, s.yaml, "must be a single value, not %s", n.kind)
		return given{}, false
	}
	return g, true
}

func (l *loader) fileOrigin(n *node) Origin {
	return Origin{From: FromFile, At: l.file.at(n.line), line: n.line, secret: n.any((*node).isSecret)}
}

// translate turns another system's word for a setting into ours.
func (l *loader) translate(g given, a also) (given, bool) {
	text := g.texts[len(g.texts)-1]
	word, ok := a.words[text]
	if !ok {
		words := slices.Sorted(maps.Keys(a.words))
		l.problems.add(g.origin.At, "%s must be one of %s%s", notation.Quote(text), strings.Join(words, ", "), spell.Hint(text, words))
		return given{}, false
	}
	return given{[]string{word}, g.origin}, true
}

// twice refuses a flag given beside its other name.
func (l *loader) twice(s setting) {
	for _, a := range s.also {
		if _, ok := l.flag(a.name); ok {
			l.problems.add("--"+a.name, "is the same setting as --%s; give one of them", s.name)
		}
	}
}

// apply puts a setting into the configuration, if somebody decided it.
func (l *loader) apply(s setting) {
	if _, done := l.origins[s.name]; done {
		return
	}
	g, ok := l.look(s)
	if !ok {
		return
	}
	err := s.set(&l.cfg, g.texts)
	if err == nil {
		l.origins[s.name] = g.origin
		return
	}
	if g.origin.secret {
		err = hidden(s.kind)
	}
	if g.origin.From == FromFile {
		l.file.problem(g.origin.line, s.yaml, "%s", err)
		return
	}
	l.problems.add(g.origin.At, "%s", err)
}

// hidden stands for an error that would tell what is behind a reference.
func hidden(kind string) error {
	return fmt.Errorf("%s; expected: %s", hiddenText, kind)
}

const hiddenText = "the value behind the reference is not allowed here"

// readConfigFile finds out whether there is a file, and reads it.
func (l *loader) readConfigFile() {
	l.apply(named("config"))
	if l.cfg.File == "" {
		return
	}
	b, err := l.readFile(l.cfg.File)
	if err != nil {
		l.problems.add(l.origins["config"].At, "reading the configuration: %s", err)
		return
	}
	l.file = parseYAML(l.cfg.File, b, func(s string) (string, []string, error) { return Expand(s, l.reference) })
	known := []string{retryPath, typesPath, doorsPath, queuesPath, cronsPath, gridPath, inboxesPath, clusterPath, pipelinesPath, tokensPath}
	for _, s := range settings {
		if s.yaml != "" {
			known = append(known, s.yaml)
		}
	}
	l.leaves = l.file.leaves(l.file.root, "", known)
}

func (l *loader) reference(ref string) (string, error) {
	scheme, name, _ := strings.Cut(ref, ":")
	switch {
	case scheme == "env" && name != "":
		value, ok := l.env[name]
		if !ok {
			return "", fmt.Errorf("${env:%s}: the environment has no such variable", name)
		}
		return value, nil
	case scheme == "file" && name != "":
		p := name
		if !filepath.IsAbs(p) { // beside the file that names it
			p = filepath.Join(filepath.Dir(l.cfg.File), p)
		}
		b, err := l.readFile(p)
		if err != nil {
			return "", fmt.Errorf("${file:%s}: %w", name, err)
		}
		if len(b) > fileBytesMax {
			return "", fmt.Errorf("${file:%s}: is larger than %s", name, notation.ShowSize(fileBytesMax))
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
	return "", fmt.Errorf("%s: use ${env:NAME} or ${file:PATH}; write $${ for the two characters themselves", notation.Quote("${"+ref+"}"))
}

// The settings that together make the default polynomial curve, and their
// keys in a curve.
var backoffSettings = []struct{ name, key string }{
	{"default-backoff-exponent", "exponent"},
	{"default-backoff-base", "base"},
	{"default-backoff-jitter", "jitter"},
}

// defaultRetry reads the server's policy from the file and makes ready for
// flags and environment, which are laid over it.
func (l *loader) defaultRetry() {
	var curve *node
	if n := l.leaves[retryPath]; n != nil {
		r := l.file.partialRetry(n, retryPath)
		l.cfg.Retry = r.Over(l.cfg.Retry)
		l.origins[retryPath] = l.fileOrigin(n)
		if r.Limit.IsSet() {
			l.origins["default-retry-limit"] = l.fileOrigin(n.find("limit"))
		}
		if r.Curve != nil {
			curve = n.find("curve")
		}
	}
	if g, ok := l.look(named("default-retry-limit")); ok && g.origin.From != FromFile {
		delete(l.origins, "default-retry-limit") // so that apply lays it over
	}
	if curve != nil {
		for _, b := range backoffSettings {
			l.origins[b.name] = l.fileOrigin(curve)
		}
	}
	l.allThree(curve)
}

// allThree holds that the default backoff is given whole or not at all, by flags,
// environment and file together: two of three numbers, with the third from
// nowhere, is a curve that nobody chose.
func (l *loader) allThree(curve *node) {
	polynomial := curve != nil && l.cfg.Retry.Curve.Kind == job.CurvePolynomial
	var present, missing []string
	inFile := 0
	for _, b := range backoffSettings {
		_, outside := l.look(named(b.name))
		switch {
		case outside:
			delete(l.origins, b.name)
			present = append(present, b.name)
		case polynomial && curve.find(b.key) != curve:
			inFile++
		default:
			missing = append(missing, "--"+b.name)
		}
	}
	if len(present) == 0 {
		if inFile > 0 && len(missing) > 0 {
			l.file.problem(curve.line, join(retryPath, "curve"), "the default backoff needs exponent, base and jitter together; missing: %s", strings.Join(missing, ", "))
		}
		return
	}
	if !polynomial {
		c := *job.DefaultRetry().Curve
		l.cfg.Retry.Curve = &c
	}
	if len(missing) > 0 {
		g, _ := l.look(named(present[0]))
		l.problems.add(g.origin.At, "the default backoff needs exponent, base and jitter together; missing: %s", strings.Join(missing, ", "))
	}
}

func named(name string) setting {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.name == name })
	if i < 0 {
		panic("no setting is called " + name)
	}
	return settings[i]
}

// count gives the count to the polynomial curves of a policy that name none in
// the file. n is the policy there, nil if it is not.
func (l *loader) count(r job.Retry, n *node) {
	give := func(c *job.Curve, path string) {
		named := n != nil && n.find(path+".count") != n.find(path)
		if c != nil && c.Kind == job.CurvePolynomial && !named {
			c.Count = l.cfg.BackoffCount
		}
	}
	give(r.Curve, "curve")
	if r.Rules == nil {
		return
	}
	for i, rule := range *r.Rules {
		give(rule.Curve, fmt.Sprintf("rules[%d].curve", i))
	}
}

// adminListener is on where somebody says where it shall be, or speaks of Zizq, and
// nobody says that it shall not.
func (l *loader) adminListener() {
	if _, said := l.origins["admin"]; said {
		return
	}
	l.cfg.Admin = l.speaksZizq()
	for _, s := range settings {
		if o, given := l.origins[s.name]; given && strings.HasPrefix(s.name, adminPrefix) {
			l.cfg.Admin, l.origins["admin"] = true, o
			return
		}
	}
}

// commitMode hears Zizq's word that enqueues at least shall be on disk: here
// one mode holds for all, so it is the stronger one.
func (l *loader) commitMode() {
	const name = "enqueue-commit-mode"
	g, ok := l.flag(name)
	if !ok {
		g, ok = l.variable(env(envZizqs, name))
	}
	if !ok {
		return
	}
	g, ok = l.translate(g, named("sync").also[0])
	weaker := l.origins["sync"].At == "--default-commit-mode" || l.origins["sync"].At == env(envZizqs, "default-commit-mode")
	if ok && g.texts[0] == string(SyncAlways) && weaker {
		l.cfg.Sync = SyncAlways
		l.origins["sync"] = g.origin
	}
}

// foreign notes the settings of Zizq that mean nothing here.
func (l *loader) foreign() {
	for _, f := range foreigners {
		for _, look := range []func() (given, bool){
			func() (given, bool) { return l.flag(f.name) },
			func() (given, bool) { return l.variable(env(envZizqs, f.name)) },
		} {
			g, ok := look()
			switch {
			case !ok:
			case f.name != "enqueue-commit-mode":
				l.notice(slog.LevelDebug, g.origin.At+" is a setting of Zizq and means nothing here")
			}
		}
	}
}

// keepAsZizq lets finished jobs leave at once, as Zizq does, where nobody said
// how long they are kept and the server is started with a word of Zizq's.
func (l *loader) keepAsZizq() {
	const setting = "default-completed-job-retention"
	if _, decided := l.origins[setting]; decided || !l.speaksZizq() {
		return
	}
	l.cfg.RetainDone = 0
}

// speaksZizq reports whether a flag or variable is given that only Zizq has.
func (l *loader) speaksZizq() bool {
	heard := func(name string) bool {
		_, given := l.variable(env(envZizqs, name))
		return given
	}
	for _, f := range foreigners {
		if _, given := l.flag(f.name); given || heard(f.name) {
			return true
		}
	}
	for _, s := range settings {
		if _, given := l.flag(s.name); given && strings.HasPrefix(s.name, adminPrefix) || heard(s.name) {
			return true
		}
		for _, a := range s.also {
			if _, given := l.flag(a.name); given || heard(a.name) {
				return true
			}
		}
	}
	return false
}

// adminPrefix is how the settings of the admin listener begin, all of them Zizq's.
const adminPrefix = "admin-"

// clientVariables are what the commands read that talk to a server, behind our
// prefix.
var clientVariables = []string{"URL", "TOKEN", "TOKEN_FILE"}

// zizqsClients are those of Zizq's own commands, behind its prefix.
var zizqsClients = []string{"URL", "ADMIN_URL", "ADMIN_TLS_CA", "ADMIN_TLS_CLIENT_CERT", "ADMIN_TLS_CLIENT_KEY"}

// strangers points out variables that are nearly ours or Zizq's, and those of the
// library that the inboxes come from. Others may be meant for other commands, so
// they are no problem.
func (l *loader) strangers() {
	ours, zizqs := slices.Clone(clientVariables), slices.Clone(zizqsClients)
	var hidden []string
	for _, s := range settings {
		zizqs = append(zizqs, env("", s.name))
		if s.hidden {
			hidden = append(hidden, env("", s.name))
			continue
		}
		ours = append(ours, env("", s.name))
		for _, a := range s.also {
			zizqs = append(zizqs, env("", a.name))
		}
	}
	for _, f := range foreigners {
		zizqs = append(zizqs, env("", f.name))
	}
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		if place := inbox.Place(name); place != "" && strings.HasPrefix(name, envLibrarys) {
			l.notice(slog.LevelWarn, name+" is no setting; an inbox has it in the configuration file: inboxes.NAME."+place)
		}
		for prefix, known := range map[string][]string{envOurs: ours, envZizqs: zizqs} {
			rest, is := strings.CutPrefix(name, prefix)
			if !is || slices.Contains(known, rest) || slices.Contains(hidden, rest) {
				continue
			}
			if meant := spell.Meant(rest, known); meant != "" {
				l.notice(slog.LevelWarn, name+" is no setting; did you mean "+prefix+meant+"?")
			}
		}
	}
}

// contradictions tells where the setting came from that does not fit.
func (l *loader) contradictions() {
	for _, p := range l.cfg.contradictions() {
		o, ok := l.origins[p.Where]
		if ok {
			p.Where = o.where(named(p.Where).yaml)
		}
		l.problems = append(l.problems, p)
	}
}
