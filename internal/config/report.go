package config

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"text/tabwriter"

	"github.com/reprisehq/reprise/internal/job"
)

// Report tells every value in effect and who decided it.
type Report struct {
	File    string   `json:"file,omitempty"` // the configuration file
	Values  []Value  `json:"values"`
	Notices []Notice `json:"notices,omitempty"`
}

// Value is one setting in effect, written as Load reads it.
type Value struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin Origin `json:"origin"`
}

// Origin is who decided a value, and where.
type Origin struct {
	From From   `json:"from"`
	At   string `json:"at,omitempty"` // --port, REPRISE_PORT, reprise.yaml:3

	line   int  // in the file
	secret bool // the value came out of a reference and is not shown
}

// From is a source of values, the weakest first.
type From string

// The sources.
const (
	FromDefault     From = "default"
	FromFile        From = "file"
	FromEnvironment From = "environment"
	FromFlag        From = "flag"
)

func (o Origin) String() string {
	if o.At == "" {
		return string(o.From)
	}
	return string(o.From) + " " + o.At
}

// where names the setting as the person wrote it.
func (o Origin) where(yaml string) string {
	if o.From == FromFile {
		return o.At + ": " + yaml
	}
	return o.At
}

// Notice is something a person may want to know, and how much.
type Notice struct {
	Level slog.Level `json:"level"`
	Text  string     `json:"text"`
}

// masked is shown instead of what a reference stood for.
const masked = "********"

func (l *loader) value(name, value string, o Origin) Value {
	o.From = cmp.Or(o.From, FromDefault)
	if o.secret {
		value = masked
	}
	return Value{name, value, o}
}

func (l *loader) notice(lv slog.Level, text string) {
	n := Notice{lv, text}
	if !slices.Contains(l.report.Notices, n) {
		l.report.Notices = append(l.report.Notices, n)
	}
}

// notices tells of choices that cost safety.
func (l *loader) notices() {
	if why := l.cfg.Exposed(len(l.cfg.Tokens) > 0); why != nil && l.cfg.Insecure {
		l.notice(slog.LevelWarn, "insecure: "+why.Error())
	}
	switch {
	case l.cfg.Null:
		l.notice(slog.LevelWarn, "null: work is accepted and forgotten")
	case l.cfg.Sync == SyncInterval:
		l.notice(slog.LevelInfo, "sync interval: a power cut can take the last "+job.Millis(l.cfg.SyncInterval.Milliseconds()).String()+" of accepted work")
	case l.cfg.Sync == SyncOS:
		l.notice(slog.LevelInfo, "sync os: a power cut can take accepted work")
	}
}

// list writes down every value in effect.
func (l *loader) list() {
	for _, s := range settings {
		if s.hidden && l.origins[s.name].From == "" {
			continue
		}
		l.report.Values = append(l.report.Values, l.value(s.name, s.show(&l.cfg), l.origins[s.name]))
	}
	l.report.Values = append(l.report.Values, l.value(retryPath, showRetry(l.cfg.Retry), l.retryOrigin()))
	l.report.Values = append(l.report.Values, l.fileValues...)
}

// retryOrigin is where the policy as a whole comes from: the file, or the
// first of the settings that make it.
func (l *loader) retryOrigin() Origin {
	names := []string{retryPath, "default-retry-limit"}
	for _, b := range backoffSettings {
		names = append(names, b.name)
	}
	for _, name := range names {
		if o, ok := l.origins[name]; ok {
			return o
		}
	}
	return Origin{}
}

// showRetry writes a policy as JSON, which the file accepts as it is.
func showRetry(r job.Retry) string {
	b, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// WriteTable writes the values for people. The value stands last, because a
// policy is long.
func (r Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SETTING\tFROM\tVALUE")
	for _, v := range r.Values {
		fmt.Fprintf(t, "%s\t%s\t%s\n", v.Name, v.Origin, v.Value)
	}
	return t.Flush()
}

// Tell writes the notices to the log, each at its level.
func (r Report) Tell(ctx context.Context, log *slog.Logger) {
	for _, n := range r.Notices {
		log.Log(ctx, n.Level, "configuration", "notice", n.Text)
	}
}
