package main

import (
	"strings"
	"testing"
)

func TestBudgetsAreSetListedShownAndDeleted(t *testing.T) {
	url := serverURL(t)
	run := func(args ...string) string { t.Helper(); return well(t, append(args, "--url", url)...) }
	if out := run("budgets", "set", "gpu of test", "--allocation", "2"); out != "budget gpu of test is 2 at once\n" {
		t.Error(out)
	}
	if out := run("budgets", "set", "api of test", "--allocation", "1000", "--per", "1m", "--burst", "20"); out != "budget api of test is 1,000 in 1m, up to 20 gather\n" {
		t.Error(out)
	}
	id := field(t, run("enqueue", "--queue", "bound", "--type", "t", "--budget", "gpu of test=2", "--budget", "api of test", "--json"), "id")
	spared := field(t, run("enqueue", "--queue", "bound", "--type", "t", "--json"), "id")
	if out := run("jobs", "list", "--budget", "gpu of test"); !strings.Contains(out, id) || strings.Contains(out, spared) {
		t.Errorf("the jobs of a budget are\n%s", out)
	}
	if out := run("jobs", "show", id); !strings.Contains(out, "gpu of test=2, api of test=1") {
		t.Error(out)
	}
	out := run("budgets", "list")
	if !strings.HasPrefix(out, "BUDGET ") || !strings.Contains(out, "gpu of test  2 at once") || !strings.Contains(out, "api of test  1,000 in 1m, up to 20 gather") {
		t.Error(out)
	}
	for _, line := range strings.Split(strings.TrimSpace(run("budgets", "list", "--json")), "\n") {
		if key := field(t, line, "key"); key == "gpu of test" && (field(t, line, "jobs") != "1" || field(t, line, "available") != "2") {
			t.Error(line)
		}
	}
	if out := run("budgets", "show", "gpu of test"); !strings.Contains(out, "2 units") || !strings.Contains(out, "1 bound to it and not completed") || strings.Contains(out, "waiting") {
		t.Error(out)
	}
	refused := func(says string, args ...string) {
		t.Helper()
		out, stderr, code := cli(t, "", append(args, "--url", url)...)
		if code == 0 || out != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d: %s%s, want %q", args, code, out, stderr, says)
		}
	}
	refused(`"reprise jobs list --budget gpu of test" shows them`, "budgets", "delete", "gpu of test")
	refused(`"reprise budgets list" shows those there are`, "budgets", "show", "none")
	refused("--allocation is missing", "budgets", "set", "x")
	refused("--burst needs --per", "budgets", "set", "x", "--allocation", "1", "--burst", "2")
	refused("write a span of time", "budgets", "set", "x", "--allocation", "1", "--per", "-1s")
	refused("at least a millisecond", "budgets", "set", "x", "--allocation", "1", "--per", "1ns")
	refused("allocation must be a whole number from 1 to 1000000", "budgets", "set", "x", "--allocation", "1000001")
	refused("it is used as: reprise budgets show KEY", "budgets", "show")
	refused("the cost is a whole number", "enqueue", "--queue", "q", "--type", "t", "--budget", "gpu=much")
	refused("names no budget", "enqueue", "--queue", "q", "--type", "t", "--budget", "=2")
	refused("gpu of tests", "enqueue", "--queue", "q", "--type", "t", "--budget", "gpu of tests")
	run("jobs", "delete", id)
	if out := run("budgets", "delete", "gpu of test"); out != "budget gpu of test is deleted\n" {
		t.Error(out)
	}
}
