package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
)

func TestKindsReadWhatTheyShow(t *testing.T) {
	for _, c := range []struct {
		kind field
		good map[string]string // as written, as shown
		bad  []string
	}{
		{
			named("disk-reserve").field,
			map[string]string{"2%": "2%", "0.5%": "0.5%", "0.57%": "0.57%", "90%": "90%", "1GiB": "1GiB", "0": "0"},
			[]string{"0%", "-1%", "100%", "NaN%", "%", "two%", "1e1%", "-1"},
		},
		{
			named("host").field,
			map[string]string{"[::1]": "::1", "LOCALHOST": "localhost", "::FFFF:1.2.3.4": "::ffff:1.2.3.4", "a-b.c_d": "a-b.c_d"},
			[]string{"", "a b", "http://x", "x:1", "[::1]:1", "1.2.3.4:5", "ü", strings.Repeat("a", 254), "*"},
		},
		{
			named("allow-host").field,
			map[string]string{"a, b ,a": "a,b", "": "", ",": ""},
			[]string{"a,*"},
		},
		{
			named("insecure").field,
			map[string]string{"YES": "true", "on": "true", "1": "true", "0": "false", "No": "false", "off": "false"},
			[]string{"", "maybe", "2"},
		},
		{
			named("default-backoff-exponent").field,
			map[string]string{"0": "0", "4.50": "4.5", "1000": "1000"},
			[]string{"", "--1", "1e2", "NaN", "Inf", "0x1", "."},
		},
		{
			named("sync-interval").field,
			map[string]string{"100": "100ms", "0.25s": "250ms", "PT1M": "1m", "1.5ms": "1ms"},
			[]string{"0", "61s", "-1s", "1.5", "soon", ""},
		},
		{
			named("default-retry-limit").field,
			map[string]string{"none": "0", "unlimited": "unlimited", "4294967295": "4294967295"},
			[]string{"-1", "4294967296", "1.0", ""},
		},
		{
			named("log-level").field,
			map[string]string{"trace": "trace", "error": "error"},
			[]string{"INFO", "warning", ""},
		},
		{
			named("root-dir").field,
			map[string]string{"a b": "a b", "~x": "~x"},
			[]string{"", "~", "~/x", "a\x00b"},
		},
	} {
		for text, want := range c.good {
			cfg := Default()
			err := c.kind.set(&cfg, []string{text})
			if got := c.kind.show(&cfg); err != nil || got != want {
				t.Errorf("%q is shown as %q, %v; want %q", text, got, err, want)
			}
			if err := c.kind.set(&cfg, []string{want}); err != nil || c.kind.show(&cfg) != want {
				t.Errorf("%q is not read back: %q, %v", want, c.kind.show(&cfg), err)
			}
		}
		for _, text := range c.bad {
			cfg := Default()
			if err := c.kind.set(&cfg, []string{text}); err == nil {
				t.Errorf("%s: %q is accepted as %s", c.kind.kind, text, c.kind.show(&cfg))
			}
		}
	}
}

func TestLateOKIsKeptTheOtherWayRound(t *testing.T) {
	late, q := jobs.QueueSettingNamed("late_ok"), job.NewQueue("q")
	if shown := late.Show(q); late.Kind != "until_terminal|never" || shown != "until_terminal" {
		t.Error(late.Kind, shown)
	}
	if err := late.Set(q, "never"); err != nil || !q.LateOKNever || late.Show(q) != "never" {
		t.Error(err, q.LateOKNever, late.Show(q))
	}
}

// The tables themselves: no name is used twice, defaults are written as they
// are shown, and help is one line.
func TestSettingsAreWellDeclared(t *testing.T) {
	names, paths := map[string]bool{}, map[string]bool{"": false}
	cfg := Default()
	for _, s := range settings {
		if names[s.name] || paths[s.yaml] {
			t.Errorf("%s or %s is there twice", s.name, s.yaml)
		}
		names[s.name], paths[s.yaml] = true, s.yaml != ""
		if s.help == "" || strings.ContainsAny(s.help, "\n`") || strings.HasSuffix(s.help, ".") {
			t.Errorf("%s: help %q", s.name, s.help)
		}
		if shown := s.show(&cfg); shown != s.def && s.def != "0" {
			t.Errorf("%s: default %q is shown as %q", s.name, s.def, shown)
		}
	}
	for _, f := range foreigners {
		if names[f.name] {
			t.Errorf("%s is there twice", f.name)
		}
		names[f.name] = true
	}
	for _, s := range jobs.QueueSettings {
		if s.Help == "" || strings.HasSuffix(s.Help, ".") {
			t.Errorf("%s: help %q", s.Name, s.Help)
		}
	}
}

func TestListsTellEveryProblem(t *testing.T) {
	cfg := Default()
	err := named("allow-host").set(&cfg, []string{"a:1", "ok", "b:2"})
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 2 || cfg.AllowHost != nil {
		t.Errorf("%v, %v", err, cfg.AllowHost)
	}
}
