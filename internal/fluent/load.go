// Package fluent makes a pipeline of a Fluent Bit configuration: it says which code runs a
// plugin that is declared in internal/plugin, and gives it what the sections say.
package fluent

import (
	"cmp"
	"io"
	"log/slog"
	"math"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/door/pipeline"
	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/plugin"
	"github.com/reprisehq/reprise/internal/spell"
)

// Options are a configuration and what its plugins use of the process.
type Options struct {
	Name  string // of the pipeline: its queues begin with it
	Path  string // of the main file; "" = none
	Flags *fluentconf.Arguments
	From  fluentconf.Source

	Insecure   bool     // inputs may listen beyond this machine without TLS
	AllowHosts []string // further names of this machine, in a Host header

	Stdin  io.Reader
	Stdout io.Writer
	Now    func() time.Time
	Log    *slog.Logger
}

// Config is what was read.
type Config struct {
	*pipeline.Plan
	Service *plugin.Values
	Monitor string // host:port of HTTP_Server; "" = it is off
	Files   []string
}

// loader makes the plugins of one configuration.
type loader struct {
	*fluentconf.Report
	Options
	catalog *plugin.Catalog
	service *plugin.Values
	parsers *parser.Table
	numbers map[string]int // of the next plugin of a kind and name
	names   map[string]fluentconf.Place
}

// kinds are the sections that have an effect.
var kinds = []string{fluentconf.Service, fluentconf.Input, fluentconf.Filter, fluentconf.Output, fluentconf.Parser, fluentconf.MultilineParser}

// Load reads a configuration. What is wrong with it is in the report, all at once; the
// configuration is to be used only if there is nothing. Nothing is opened or started.
func Load(o Options, r *fluentconf.Report) *Config {
	if o.Flags == nil {
		o.Flags = &fluentconf.Arguments{}
	}
	conf := fluentconf.Load(o.Path, o.Flags.Sections, o.From, r)
	service := plugin.ReadService(conf.Sections, r)
	l := &loader{Report: r, Options: o, catalog: plugin.All(), service: service, numbers: map[string]int{}, names: map[string]fluentconf.Place{}}
	l.parsers = l.readParsers(conf)
	plan := &pipeline.Plan{
		Name:  o.Name,
		Flush: job.Millis(service.Span("flush").Milliseconds()),
		Base:  job.Millis(service.Int("scheduler.base")) * job.Second,
		Cap:   job.Millis(service.Int("scheduler.cap")) * job.Second,
		Now:   o.Now,
	}
	there := map[string]bool{}
	for _, s := range conf.Sections {
		there[s.Kind] = true
		switch s.Kind {
		case fluentconf.Input:
			l.input(plan, s)
		case fluentconf.Filter:
			l.filter(plan, s)
		case fluentconf.Output:
			l.output(plan, s)
		case fluentconf.Service, fluentconf.Parser, fluentconf.MultilineParser:
		case "stream_processor":
			r.Problem(s.At, "there is no stream processor; send the records to one by output kafka")
		default:
			if hint := spell.Hint(s.Kind, kinds); hint != "" {
				r.Problem(s.At, "there is no section %s%s", strconv.Quote(s.Kind), hint)
			} else {
				r.Notice(s.At, "the section %s has no effect here", strconv.Quote(s.Kind))
			}
		}
	}
	if !there[fluentconf.Input] {
		r.Notice(l.main(), "there is no input, so nothing is read; write an [INPUT], or -i NAME")
	}
	if !there[fluentconf.Output] {
		r.Notice(l.main(), "there is no output, so all that is read is dropped; write an [OUTPUT], or -o NAME")
	}
	at := l.monitor()
	_, _ = service.Text("storage.path"), service.Text("log_level") // who starts the server asks for them
	for _, s := range service.Unread() {
		r.Notice(s.At, "%s has no effect here yet", s.Name)
	}
	return &Config{plan, service, at, conf.Files}
}

// monitor is where the counters are served.
func (l *loader) monitor() string {
	v := l.service
	for _, name := range []string{"health_check", "storage.metrics", "hot_reload"} { // who serves them asks for them
		_ = v.Flag(name)
	}
	for _, name := range []string{"hc_errors_count", "hc_retry_failure_count", "hc_period", "http_port"} {
		_ = v.Int(name)
	}
	host := v.Text("http_listen")
	if !v.Flag("http_server") {
		return ""
	}
	if !v.Has("http_listen") {
		host = "127.0.0.1"
		l.Notice(v.Place("http_server"), "HTTP_Server listens at 127.0.0.1 only; write HTTP_Listen with an address to let other machines ask")
	} else if !onlyHere(host) && !l.Insecure {
		l.Problem(v.Place("http_listen"), "HTTP_Server speaks no TLS and asks for no token, so it listens at this machine only: "+
			"write HTTP_Listen 127.0.0.1 and let a proxy ask it, or say REPRISE_INSECURE=true if nobody else reaches that network")
	}
	return net.JoinHostPort(host, strconv.FormatInt(v.Int("http_port"), 10))
}

func (l *loader) main() fluentconf.Place {
	if l.Path == "" {
		return fluentconf.CommandLine
	}
	return fluentconf.Place{File: l.Path}
}

// read reads a section and names its plugin; nil if it cannot be made.
func (l *loader) read(s *fluentconf.Section) (v *plugin.Values, name string) {
	before := len(l.Problems())
	if v = l.catalog.Read(s, l.Report); v == nil {
		return nil, ""
	}
	kind := v.Plugin.Kind + " " + v.Plugin.Name
	name = cmp.Or(v.Text("alias"), v.Plugin.Name+"."+strconv.Itoa(l.numbers[kind]))
	l.numbers[kind]++
	if at, twice := l.names[v.Plugin.Kind+" "+name]; twice {
		l.Problem(v.Place("alias"), "the name %s is taken by the %s at %s; give one of them another alias", strconv.Quote(name), v.Plugin.Kind, at)
	}
	l.names[v.Plugin.Kind+" "+name] = v.At
	if len(l.Problems()) > before {
		return nil, ""
	}
	return v, name
}

// made tells what a plugin did not like, and which settings it never asked for.
func (l *loader) made(v *plugin.Values, err error) bool {
	if err != nil {
		who := v.Plugin.Kind + " " + v.Plugin.Name + ": "
		l.Problem(v.At, "%s%s", who, strings.TrimPrefix(err.Error(), who))
		return false
	}
	for _, s := range v.Unread() {
		l.Notice(s.At, "%s of %s %s has no effect here", s.Name, v.Plugin.Kind, v.Plugin.Name)
	}
	return true
}

func (l *loader) input(plan *pipeline.Plan, s *fluentconf.Section) {
	v, name := l.read(s)
	if v == nil {
		return
	}
	in := &pipeline.Input{Name: name, Most: v.Size("mem_buf_limit")}
	if v.Text("storage.type") != "memory" && !v.Flag("storage.pause_on_chunks_overlimit") {
		in.Most = 0 // on disk there is room: mem_buf_limit never pauses then (reference 3.3)
	}
	tag := cmp.Or(v.Text("tag"), name)
	make, is := inputs[v.Plugin.Name]
	if !is {
		make, is = listeners[v.Plugin.Name]
	}
	if !is {
		l.Problem(v.At, "input %s does not run here yet; docs/pipeline.md lists what does", v.Plugin.Name)
		return
	}
	source, err := make(l, v, tag)
	if l.made(v, err) {
		in.Source = source
		plan.Inputs = append(plan.Inputs, in)
	}
}

func (l *loader) output(plan *pipeline.Plan, s *fluentconf.Section) {
	v, name := l.read(s)
	if v == nil {
		return
	}
	retries := v.Retries("retry_limit")
	o := &pipeline.Output{
		Name: name, Match: l.match(v), Most: v.Size("storage.total_limit_size"),
		Limit: job.Unlimited(), Lanes: lanesOf(v),
	}
	if !retries.Unlimited {
		o.Limit = job.LimitOf(uint32(min(retries.Most, math.MaxUint32)))
	}
	if !v.Has("match") && !v.Has("match_regex") {
		l.Notice(v.At, "output %s has no Match: it gets all records", name)
	}
	make, is := outputs[v.Plugin.Name]
	if !is {
		l.Problem(v.At, "output %s does not run here yet; docs/pipeline.md lists what does", v.Plugin.Name)
		return
	}
	sink, err := make(l, v)
	if l.made(v, err) {
		o.Sink = sink
		plan.Outputs = append(plan.Outputs, o)
	}
}

// Lanes of an output: what one thread of the original has in flight, and how many there
// are where the file leaves it to the output.
const (
	lanesOfWorker = 4
	lanesDefault  = 8
)

func lanesOf(v *plugin.Values) int {
	switch n := v.Int("workers"); {
	case v.Flag("no_multiplex"):
		return 1
	case n > 0:
		return int(n) * lanesOfWorker
	case v.Plugin.Property("host") == nil: // what is local is written one chunk after the other
		return 1
	}
	return lanesDefault
}

func (l *loader) match(v *plugin.Values) (m pipeline.Match) {
	m.Glob = v.Text("match")
	if text := v.Text("match_regex"); text != "" {
		regex, err := regexp.Compile(text)
		if err != nil {
			l.Problem(v.Place("match_regex"), "match_regex: %v", err)
		}
		m.Regex = regex
	}
	return m
}

// sourceOf keeps a nil pointer from becoming a source.
func sourceOf[S connect.Source](s S, err error) (connect.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func sinkOf[S connect.Sink](s S, err error) (connect.Sink, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
