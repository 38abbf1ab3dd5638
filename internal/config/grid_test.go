package config

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/job"
)

func TestTheGridOfTheFileIsRead(t *testing.T) {
	cfg, report, err := load(t, nil, nil, `
grid:
  profile: modern
  lost_after: 20s
  defaults:
    weight: 3
    evicted_place: back
  services:
    pricing: {task_max_time: 50s}
`)
	if err != nil {
		t.Fatal(err)
	}
	g := cfg.Grid
	if g.Profile != job.ProfileModern || g.LostAfter != 20*job.Second || g.HeartbeatInterval != 5*job.Second || len(g.Services) != 1 {
		t.Errorf("%+v", g)
	}
	q, _, err := grid.Resolve(g.Profile, g.Defaults, g.Services["pricing"], nil)
	if err != nil || q.Grid.Weight != 3 || q.Grid.EvictedPlace != job.PlaceBack || q.RunTimeout != 50*job.Second {
		t.Errorf("%v %+v", err, q)
	}
	told := map[string]string{}
	for _, v := range report.Values {
		told[v.Name] = v.Value
	}
	for name, want := range map[string]string{
		"grid.profile": "modern", "grid.defaults.weight": "3", "grid.defaults.evicted_place": "back", "grid.services.pricing.task_max_time": "50s",
	} {
		if told[name] != want {
			t.Errorf("%s is told as %q, not %q", name, told[name], want)
		}
	}
}

func TestAFileWithoutGridHasItsDefaults(t *testing.T) {
	for _, text := range []string{"", "grid:\n", "server: {port: 0}\n"} {
		cfg, _, err := load(t, nil, nil, text)
		if err != nil || cfg.Grid.Profile != job.ProfileSeed || cfg.Grid.LostAfter != 15*job.Second {
			t.Errorf("%q: %v %+v", text, err, cfg.Grid)
		}
	}
}

func TestProblemsOfTheGridHaveTheirLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"grid:\n  profile: fast\n", "reprise.yaml:2: grid.profile: must be seed or modern"},
		{"grid:\n  defaults:\n    weight: 5\n    max_engines: -1\n", "reprise.yaml:4: grid.defaults.max_engines: must be a whole number"},
		{"grid:\n  services:\n    a: {weight: 10}\n    b: {urgent: 1}\n", "reprise.yaml:3: grid.services.a.weight: must be"},
		{"grid:\n  services:\n    a: {weight: 10}\n    b: {urgent: 1}\n", "reprise.yaml:4: grid.services.b.urgent: must be true or false"},
		{"grid:\n  engines: 5\n", "reprise.yaml:2: grid.engines: is not known; there are profile"},
		{"grid: 5\n", "reprise.yaml:1: grid: must be keys"},
		{"grid:\n  services:\n    a: {on_timeout: reschedule, max_copies: 1}\n", "reprise.yaml:3: grid.services.a.max_copies: must be at least 2"},
	} {
		_, _, err := load(t, nil, nil, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, not %q", c.text, err, c.want)
		}
	}
}

func TestAConfigurationThatWasNotLoadedIsCheckedToo(t *testing.T) {
	cfg := Default()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg.Grid.Defaults = grid.Given{"weight": []byte("11")}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "grid.defaults.weight") {
		t.Error(err)
	}
}
