package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGridSimulateComparesStrategies(t *testing.T) {
	args := []string{"grid", "simulate", "--tasks", "10", "--slots", "40", "--run", "1s", "--slow-share", "0.03", "--seed", "9", "--strategies", "median,hedge,clone"}
	out := well(t, args...)
	for _, want := range []string{
		"10 tasks of 1s ±20 % on 40 slots; 3 % of the runs take 50 times as long; seed 9\n",
		"none      56.074s     0       0            0           0.0 %\n", "clone     997ms       10      5 ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	var got struct {
		Runs []struct {
			Strategy string `json:"strategy"`
			End      int    `json:"end_ms"`
			Copies   int    `json:"copies"`
		} `json:"runs"`
	}
	if err := json.Unmarshal([]byte(well(t, append(args, "--json")...)), &got); err != nil || len(got.Runs) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	if r := got.Runs; r[0].Strategy != "none" || r[0].End != 56_074 || r[0].Copies != 0 || r[3].Strategy != "clone" || r[3].Copies != 10 {
		t.Errorf("%+v", got)
	}
	if later := well(t, append(args, "--median-age", "10s", "--strategies", "median")...); !strings.Contains(later, "median    11.") {
		t.Errorf("with --median-age 10s:\n%s", later)
	}
	svg := filepath.Join(t.TempDir(), "p.svg")
	if printed := well(t, append(args, "--svg", svg)...); printed != out {
		t.Errorf("with a picture it prints\n%s", printed)
	}
	if b, err := os.ReadFile(svg); err != nil || !strings.Contains(string(b), "copies by median") {
		t.Errorf("the picture: %v", err)
	}
}

func TestGridSimulateRefusesWhatCannotBe(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--tasks 0 --slow 0.1", "tasks: must be from 1 to 100000"},
		{"--tasks 0 --slow 0.1", "slow: must be a number from 1 to 1000"},
		{"--strategies quorum", "there is no strategy quorum; choose from tail, mean,"},
		{"--median-factor 0.5", "redundancy.median_factor must be a number from 1 to 1000"},
		{"--run soon", "--run"},
		{"x", "x"},
	} {
		out, stderr, code := cli(t, "", append([]string{"grid", "simulate"}, strings.Fields(c.args)...)...)
		if code != 2 || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, %q\n%s", c.args, code, out, stderr)
		}
	}
}
