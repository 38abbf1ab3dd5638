package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// What is set over the API may be called only if the file names it, nobody is
// sent elsewhere by an answer, and what authorises the calls is told to nobody
// but the target (operations.md, Security).
func TestATargetOfTheAPIIsOneOfTheFile(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	keys := make(chan string, 1)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/elsewhere":
			elsewhere.Add(1)
		default:
			_, _ = io.Copy(io.Discard, r.Body)
			keys <- r.Header.Get("Authorization")
		}
	}))
	t.Cleanup(target.Close)
	at, err := url.Parse(target.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const key = "hunter2-of-the-target"
	write(t, filepath.Join(dir, "key"), key)
	file := write(t, filepath.Join(dir, "reprise.yaml"), fmt.Sprintf(
		"inboxes: {kept: {group: {json: .k}, batch: {query: none}, deliver: {http: {url: %q, headers: {Authorization: \"${file:key}\"}}}}}\n", target.URL+"/kept"))
	if shown := cliOK(t, "", "config", "-c", file); strings.Contains(shown, key) {
		t.Errorf("the header is shown:\n%s", shown)
	}
	s := start(t, filepath.Join(dir, "root"), "-c", file, "--log-level", "trace")
	c := dial(s.url)
	defer c.close()
	set := func(status int, to string) reply {
		return c.must(t, status, nil, "PUT", "/inboxes/mine", map[string]any{
			"group": map[string]any{"json": ".k"}, "message": map[string]any{"timeToLive": "1ms"},
			"batch": map[string]any{"query": "none"}, "deliver": map[string]any{"http": map[string]any{"url": to}},
		})
	}
	for to, says := range map[string]string{
		"http://169.254.169.254/latest/meta-data":      "never called",
		"http://[::ffff:169.254.169.254]/":             "never called",
		"http://[fe80::1]/":                            "never called",
		"http://127.0.0.1:1/":                          "must not be called",
		"http://localhost:" + at.Port() + "/":          "must not be called",
		"http://hooks.example.com/":                    "must not be called",
		"http://me:secret@" + at.Host + "/":            "no user and password",
		"file:///etc/passwd":                           "of the form http",
		"http://" + at.Host + ".example.com/elsewhere": "of the form http",
	} {
		if r := set(400, to); !strings.Contains(string(r.body), says) || !strings.Contains(string(r.body), "deliver.http.url") {
			t.Errorf("%s: %s, want %q", to, r.body, says)
		}
	}
	c.must(t, 404, nil, "GET", "/inboxes/mine", nil) // nothing was made of it
	set(200, target.URL+"/moved")
	c.must(t, 201, nil, "POST", "/inboxes/mine/messages", `{"k":1}`, "X-CORRELATE-ID", "m")
	until(t, "the redirect is a failure", func() (bool, string) {
		var m struct{ Status string }
		r := c.must(t, 200, &m, "GET", "/inboxes/mine/messages/m", nil)
		return m.Status == "retrying" && strings.Contains(string(r.body), "307"), string(r.body)
	})
	c.must(t, 201, nil, "POST", "/inboxes/kept/messages", `{"k":1}`, "X-CORRELATE-ID", "m")
	if got := <-keys; got != key {
		t.Errorf("the target of the file got %q", got)
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("%d calls went where the target sent them", n)
	}
	told := string(c.must(t, 200, nil, "GET", "/inboxes/kept", nil).body) + string(c.must(t, 200, nil, "GET", "/audit", nil).body)
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	says(t, told, "********")
	if strings.Contains(told+s.output(), key) {
		t.Errorf("the header is told")
	}
}

// An inbox whose secret is missing at the start says so, and delivers once the file
// is back and the configuration was read again (docs/inbox.md).
func TestAnInboxWithoutItsSecretSaysSo(t *testing.T) {
	t.Parallel()
	keys := make(chan string, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { keys <- r.Header.Get("X-Key") }))
	t.Cleanup(target.Close)
	dir, secrets := t.TempDir(), t.TempDir()
	secret := write(t, filepath.Join(secrets, "hook"), "s3cret\n")
	args := []string{"--egress-allow", "127.0.0.1", "--secrets-dir", secrets}
	s := start(t, filepath.Join(dir, "root"), args...)
	c := dial(s.url)
	c.must(t, 200, nil, "PUT", "/inboxes/in", map[string]any{
		"group": map[string]any{"json": ".k"}, "batch": map[string]any{"query": "none"},
		"deliver": map[string]any{"http": map[string]any{"url": target.URL, "headers": map[string]any{"X-Key": "${file:hook}"}}},
	})
	c.close()
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	s = start(t, filepath.Join(dir, "root"), args...)
	c = dial(s.url)
	defer c.close()
	const why = "there is no such file in egress.secrets_dir"
	var m struct{ ID string }
	c.must(t, 201, &m, "POST", "/inboxes/in/messages", `{"k":1}`)
	says(t, string(c.must(t, 200, nil, "GET", "/inboxes/in", nil).body), `"problem":"deliver.http.headers.X-Key: `, why)
	says(t, string(c.must(t, 200, nil, "GET", "/jobs/"+m.ID+"/explain", nil).body), "its inbox does not deliver", why)
	says(t, string(c.must(t, 200, nil, "GET", "/metrics", nil).body), "reprise_inboxes_not_delivering 1")
	says(t, cliOK(t, "", "inbox", "list", "--url", s.url), "does not deliver", why)
	says(t, cliOK(t, "", "inbox", "show", "in", "--url", s.url), `"problem": `, why)
	write(t, secret, "s3cret\n")
	s.signal(syscall.SIGHUP)
	if got := <-keys; got != "s3cret" {
		t.Errorf("the target got %q", got)
	}
	if told := string(c.must(t, 200, nil, "GET", "/inboxes/in", nil).body); strings.Contains(told, "problem") {
		t.Error(told)
	}
	again := func(key, said string) { // what a reload says, and what the next message brings
		t.Helper()
		s.signal(syscall.SIGHUP)
		s.logged(said)
		c.must(t, 201, nil, "POST", "/inboxes/in/messages", `{"k":2}`)
		if got := <-keys; got != key {
			t.Errorf("the target got %q, and the secret is %q", got, key)
		}
	}
	write(t, secret, "0ther\n")
	again("0ther", "an inbox has the secrets that its headers name now")
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	again("0ther", "an inbox goes on with the secrets it has")
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
