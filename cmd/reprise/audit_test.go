package main

import (
	"os/user"
	"strings"
	"testing"
)

func TestTheAuditLogTellsWhoChangedWhat(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip("there is no user: ", err)
	}
	url := serverURL(t)
	do := func(args ...string) string { t.Helper(); return well(t, append(args, "--url", url)...) }
	id := field(t, do("enqueue", "--queue", "audited", "--type", "t", "--json"), "id")
	do("queue", "set", "audited", "rate=2.5", "max_jobs=9")
	do("queue", "pause", "audited")
	do("queue", "hold", "audited", "--group", "g", "--for", "1m")
	do("queue", "breaker", "audited", "open")
	do("jobs", "delete", id)
	const entries = 5
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(do("audit", "--limit", "5")), "\n") {
		_, text, _ := strings.Cut(strings.Join(strings.Fields(line), " "), "127.0.0.1 ")
		if got = append(got, text); len(got) > 1 && !strings.Contains(line, "  "+me.Username+"  ") {
			t.Errorf("%q does not name %s", line, me.Username)
		}
	}
	want := []string{
		"", "delete " + id + " 1", "breaker open queue audited 0", "hold group g of queue audited 0 hold_until 0 -> ",
		"pause queue audited 0", `set queue audited 0 max_jobs 0 -> 9; rate null -> {"per_second":2.5}`,
	}
	if len(got) != entries+1 {
		t.Fatalf("%q", got)
	}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w) {
			t.Errorf("entry %d is %q, want %q", i, got[i], w)
		}
	}
	if out := do("dead", "audit", "--json", "--limit", "2"); strings.Count(out, "\n") != 2 || !strings.Contains(out, `"action":"delete"`) {
		t.Error(out)
	}
}
