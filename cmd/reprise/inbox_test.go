package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

func TestAnInboxThatDoesNotDeliverSaysWhy(t *testing.T) {
	x := wire.Inbox{Paused: true, Ordered: true, Problem: "deliver.http.url: must not be called"}
	if got := inboxState(&x); got != "does not deliver: deliver.http.url: must not be called" {
		t.Error(got)
	}
}

func TestInboxCommandsDoWhatTheySay(t *testing.T) {
	url := serverURL(t)
	file := filepath.Join(t.TempDir(), "in.yaml")
	settings := "group: {header: X-Hint}\nsort: header:X-No\nbatch: {mode: all, query: none}\npersistence: {messageMaxRetries: 1}\n"
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	inbox := func(want string, args ...string) {
		t.Helper()
		out := strings.Join(strings.Fields(well(t, append(append([]string{"inbox"}, args...), "--url", url)...)), " ")
		if !strings.Contains(out, want) {
			t.Errorf("%v prints %q, want %q", args, out, want)
		}
	}
	inbox("inbox in is set; it works, not ordered behind a failure", "set", "in", "-f", file)
	send := []string{"send", "in", "-p", `{"a":1}`, "--type", "a.b.C", "--ttl", "5s", "--expires", "2099-01-01T00:00:00Z", "-H", "x-hint=g 1"}
	inbox("message m2 is taken in; its group is g 1", append(send, "--id", "m2", "-H", "X-No=2")...)
	inbox("message m1 is taken in; its group is g 1", append(send, "--id", "m1", "-H", "X-No=1")...)
	inbox("message m1 was here before", append(send, "--id", "m1", "-H", "X-No=1")...)
	inbox("in 2 0 0 0 0 0 1 0 works, not ordered", "list")
	inbox(`"in_progress":2`, "list", "--json")
	inbox("m2 g 1 in_progress 0", "list", "in")
	inbox(`"message_id":"m1"`, "list", "in", "--type", "a.b.C", "--newest", "-n", "1", "--json")
	inbox(`"message_id":"m2"`, "list", "in", "--group", "g 1", "-n", "1", "--json")
	inbox("no such message", "list", "in", "--status", "dead,blocking")
	inbox(`"header": "X-Hint"`, "show", "in")
	inbox(`type a.b.C`, "show", "in", "m1")
	inbox(`"X-No":"1"`, "show", "in", "m1", "--json")
	inbox("0 tried, error noted: exhausted 1 - 0.001 not tried: exhausted 1 -", "preview", "in")
	inbox(`{"at_ms":0,"outcome":"exhausted","attempts":1}`, "preview", "in", "--json")
	inbox("0 tried, error noted: exhausted 1 -", "preview", "-f", file)
	inbox("g 1 ready 2 m1 0 now", "groups", "in", "--state", "ready")
	inbox(`"messages":2`, "groups", "in", "--json")
	inbox("message m1 is changed; it is in_progress", "edit", "in", "m1", "-p", `{"a":2}`, "--due", "2098-01-01T00:00:00Z")
	inbox(`"payload":{"a":2}`, "show", "in", "m1", "--json")
	inbox("1 message to be tried now", "retry", "in", "m1")
	inbox("1 message paused", "pause", "in", "m1")
	inbox("1 message resumed", "resume", "in", "--status", "paused")
	inbox("1 group paused", "pause", "in", "-g", "g 1")
	inbox("1 group resumed", "resume", "in", "-g", "g 1")
	inbox("1 inbox paused", "pause", "in")
	inbox("paused, not ordered", "list")
	inbox("1 inbox resumed", "resume", "in")
	inbox("1 head skipped", "skip", "in", "-g", "g 1")
	inbox("1 message changed", "edit", "in", "-g", "g 1", "--due", "2098-01-01T00:00:00Z")
	inbox("1 message changed", "edit", "in", "--type", "a.b.C", "--due", "2026-01-01T00:00:00Z", "--expires", "2099-01-01T00:00:00Z")
	inbox("1 message deleted", "delete", "in", "m2")
	inbox("0 heads skipped", "skip", "in", "--all")
	inbox("1 message deleted", "delete", "in", "--status", "dead")
	inbox("inbox in is gone", "remove", "in")
}

func TestInboxCommandLinesThatAreWrongSaySo(t *testing.T) {
	url := serverURL(t)
	for line, want := range map[string]string{
		"show":                      "it is used as",
		"show|in":                   "there is no inbox",
		"send|in":                   `--payload is missing`,
		"send|in|-p|x":              "--payload is not JSON",
		"send|in|-p|1|-H|x":         "write it as NAME=VALUE",
		"edit|in|m":                 "say what is to change",
		"edit|in|m|--due|tomorrow":  "--due tomorrow: write it as",
		"set|in|-f|/does/not/exist": "no such file",
		"list|in|--status|lost":     "there is no inbox",
		"pause":                     "it is used as",
		"preview":                   "either the name of an inbox, or --file",
		"preview|in|-f|x":           "either the name of an inbox, or --file",
		"preview|in":                "there is no inbox",
	} {
		_, stderr, code := cli(t, "", append(append([]string{"inbox"}, strings.Split(line, "|")...), "--url", url)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s; want %s", line, code, stderr, want)
		}
	}
	_, stderr, code := cli(t, "group: {json: .a}\npersistence: {messageBatchSize: -2}", "inbox", "preview", "-f", "-")
	if code == 0 || !strings.Contains(stderr, "persistence.messageBatchSize must be -1") {
		t.Error(stderr)
	}
}
