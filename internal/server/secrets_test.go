package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/job"
)

// docs/security.md, Targets.
func TestAHeaderSetOverTheAPINamesASecretInItsDirectory(t *testing.T) {
	all := t.TempDir()
	dir := filepath.Join(all, "secrets")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(all, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write("outside", "no business of theirs")
	write("secrets/hook", "s3cret\n")
	write("secrets/lines", "one\ntwo\n")
	write("secrets/empty", "")
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("secrets/large", strings.Repeat("x", secretBytesMax+1))
	if err := os.Symlink(filepath.Join(all, "outside"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"plain":               "plain",
		"Bearer ${file:hook}": "Bearer s3cret",
		"$${file:hook}":       "${file:hook}",
	} {
		filled, secrets, err := secretsFrom(dir, map[string]string{"Authorization": value})
		if err != nil || filled["Authorization"] != want || slices.Contains(secrets, "s3cret") != strings.Contains(want, "s3cret") {
			t.Errorf("%s: %v, %v, %v", value, filled, secrets, err)
		}
	}
	for value, want := range map[string]string{
		"${file:../outside}":       "no such file in egress.secrets_dir",
		"${file:/etc/passwd}":      "no such file in egress.secrets_dir",
		"${file:link}":             "no such file in egress.secrets_dir",
		"${file:nosuch}":           "no such file in egress.secrets_dir",
		"${file:.}":                "is not a file",
		"${file:fifo}":             "is not a file",
		"${file:empty}":            "is not a file",
		"${file:large}":            "to 64KiB",
		"${file:lines}":            "must be one line",
		"${env:REPRISE_TOKEN}":     "only ${file:NAME} is a reference",
		"${file:hook":              "is not closed",
		"${file:}":                 "only ${file:NAME} is a reference",
		"${secret} and ${file:no}": "only ${file:NAME} is a reference",
	} {
		_, _, err := secretsFrom(dir, map[string]string{"X-Key": value})
		if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "business") {
			t.Errorf("%s: %v", value, err)
		}
	}
	if _, _, err := secretsFrom("", map[string]string{"X-Key": "${file:hook}"}); err == nil || !strings.Contains(err.Error(), "egress.secrets_dir") {
		t.Errorf("without a directory: %v", err)
	}
}

// docs/security.md, Targets: an endpoint that answers with what it was sent.
func TestASecretThatATargetEchoesIsNotKept(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hook"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "wrong key: "+r.Header.Get("X-Key")+" of "+r.Header.Get("X-Env"), http.StatusForbidden)
	}))
	defer echo.Close()
	cfg, _, err := load(t, nil, []string{"KEY=s3cret"}, `
inboxes: {a: {group: {json: .x}, deliver: {http: {url: "`+echo.URL+`", headers: {X-Key: "Bearer ${env:KEY}", X-Env: production}}}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	egress, err := connect.ParseEgress([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	overAPI := *cfg.Inboxes[0].HTTP
	overAPI.Headers, overAPI.Mask = map[string]string{"X-Key": "Bearer ${file:hook}", "X-Env": "production"}, nil
	for h, configured := range map[*inbox.HTTP]bool{cfg.Inboxes[0].HTTP: true, &overAPI: false} {
		s, err := sinks(egress, dir)(h, configured)
		if err != nil {
			t.Fatal(err)
		}
		f := s.Deliver(t.Context(), &connect.Batch{Queue: "a", Messages: []connect.Message{{ID: "m"}}})[0].Failure
		if want := "wrong key: Bearer ******** of production"; f.Message != "answered 403 Forbidden: "+want || f.Backtrace != want {
			t.Errorf("configured %v: kept is %+v", configured, f)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyTargetsOfTheAPIAreFilled(t *testing.T) { // those of the file have had their references replaced
	egress, err := connect.ParseEgress([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	h := &inbox.HTTP{URL: "http://127.0.0.1:1/", Headers: map[string]string{"X-Key": "${file:hook}"}, Timeout: job.Second, Concurrent: 1}
	if _, err := sinks(egress, "")(h, true); err != nil {
		t.Errorf("of the file: %v", err)
	}
	if _, err := sinks(egress, "")(h, false); job.KindOf(err) != job.Invalid {
		t.Errorf("of the API: %v", err)
	}
}

// load loads a configuration from flags, environment and a file.
func load(t testing.TB, args, environ []string, file string) (config.Config, config.Report, error) {
	t.Helper()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse(append([]string{"-c", "reprise.yaml"}, args...)); err != nil {
		t.Fatal(err)
	}
	return config.Load(flags, environ, func(string) ([]byte, error) { return []byte(file), nil })
}
