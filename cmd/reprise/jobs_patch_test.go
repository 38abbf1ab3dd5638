package main

import (
	"strings"
	"testing"
)

func TestJobsArePatchedByIDAndByFilter(t *testing.T) {
	url := serverURL(t)
	var ids []string
	for _, payload := range []string{`{"to":"ann"}`, `{"to":"bob"}`, `{"to":"ann"}`} {
		out := well(t, "enqueue", "--url", url, "--queue", "shelf-patch", "--type", "t", "--json", "--payload", payload)
		_, rest, _ := strings.Cut(out, `"id":"`)
		ids = append(ids, rest[:25])
	}
	patch := func(args ...string) string {
		t.Helper()
		return well(t, append([]string{"jobs", "patch", "--url", url}, args...)...)
	}
	shows := func(id, want string) {
		t.Helper()
		if out := well(t, "jobs", "show", "--url", url, "--json", id); !strings.Contains(out, want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	if out := patch(ids[0], ids[1], "--priority", "0", "--retry-limit", "3"); out != "2 jobs patched\n" {
		t.Error(out)
	}
	shows(ids[1], `"priority":0`)
	shows(ids[1], `"retry_limit":3`)
	if out := patch(ids[0], "--retry-limit", "default", "--at", "2126-01-02T03:04:05Z", "--json"); !strings.Contains(out, `"status":"scheduled"`) || strings.Contains(out, "retry_limit") {
		t.Error(out)
	}
	patch(ids[0], "--at", "now", "--set", `{"retention":{"dead_ms":5},"priority":9}`)
	shows(ids[0], `"dead_ms":5`)
	shows(ids[0], `"status":"ready"`)
	filter := []string{"--queue", "shelf-patch", "--filter", `.to == "ann"`}
	if out := patch(append(filter, "--to-queue", "other-shelf")...); out != "2 jobs would be looked at, and patched where they are not finished; add --yes to do it\n" {
		t.Error(out)
	}
	shows(ids[0], `"queue":"shelf-patch"`)
	if out := patch(append(filter, "--to-queue", "other-shelf", "--yes")...); out != "2 jobs patched\n" {
		t.Error(out)
	}
	shows(ids[0], `"queue":"other-shelf"`)
	shows(ids[1], `"queue":"shelf-patch"`)
	if out := patch("--queue", "other-shelf", "--priority", "8", "--yes", "--json"); out != `{"patched":2}`+"\n" {
		t.Error(out)
	}
	if out := well(t, "jobs", "list", "--url", url, "--filter", `.to == "bob"`, "--queue", "shelf-patch"); !strings.Contains(out, ids[1]) || strings.Contains(out, ids[0]) {
		t.Error(out)
	}
	if out := well(t, "jobs", "delete", "--url", url, "--filter", `.to == "ann"`, "--queue", "other-shelf", "--yes"); out != "2 jobs deleted\n" {
		t.Error(out)
	}
}

func TestPatchAndDeleteWantToKnowWhatIsMeant(t *testing.T) {
	const id = "03gq0x7k2m4v9c1d8f5h6j0a1"
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"patch", "--priority", "1"}, "name the jobs to patch"},
		{[]string{"patch", id, "--queue", "q", "--priority", "1"}, "name the jobs to patch"},
		{[]string{"patch", id, "--all", "--priority", "1"}, "name the jobs to patch"},
		{[]string{"patch", id}, "say what to change"},
		{[]string{"patch", id, "--set", "{"}, "--set must be a JSON object"},
		{[]string{"patch", id, "--retry-limit", "few"}, "--retry-limit few"},
		{[]string{"patch", id, "--at", "soon"}, "--at soon"},
		{[]string{"patch", "--all", "--queue", "q", "--priority", "1"}, "--all is not for a filter"},
		{[]string{"patch", "--status", "up", "--priority", "1"}, "there is no such state"},
		{[]string{"delete"}, "name the jobs to delete"},
		{[]string{"delete", "--all", "--queue", "q"}, "--all is not for a filter"},
	} {
		if _, stderr, code := cli(t, "", append([]string{"jobs"}, c.args...)...); code != 2 || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit code %d: %s", c.args, code, stderr)
		}
	}
}
