package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/bench/system"
)

func TestSystemsAreChosenByPartsOfTheirNames(t *testing.T) {
	t.Parallel()
	for only, want := range map[string][]string{
		"reprise":              {"Reprise always", "Reprise interval", "Reprise os"},
		"beanstalkd -f0, nats": {"beanstalkd -f0", "NATS JetStream always", "NATS JetStream default"},
	} {
		chosen, err := chooseSystems(only)
		var names []string
		for _, s := range chosen {
			names = append(names, s.Name)
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%q: %v, %v", only, names, err)
		}
	}
	if all, err := chooseSystems(""); err != nil || len(all) != len(system.All()) {
		t.Errorf("%d systems, %v", len(all), err)
	}
	if _, err := chooseSystems("reprise,kafka"); err == nil || !strings.Contains(err.Error(), "kafka") {
		t.Errorf("error %v", err)
	}
}

func TestPhasesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	all := []string{"a", "b", "c"}
	if got, err := choose(all, "c,a"); err != nil || !slices.Equal(got, []string{"a", "c"}) || len(all) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := choose(all, "a,x"); err == nil {
		t.Error("an unknown phase is accepted")
	}
}

func TestASmokeRunThatMissesAPhaseIsNoSuccess(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/smoke.json"
	f := &result.File{Runs: []result.Run{
		{System: "Reprise always", Figures: []result.Figure{{Phase: "singles"}}},
		{System: "beanstalkd -f0"},
	}}
	if err := f.Save(path); err != nil {
		t.Fatal(err)
	}
	if err := checkSmoke(path, path); err == nil || !strings.Contains(err.Error(), "no figure of bulk") {
		t.Errorf("error %v", err)
	}
}
