package compat

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestTheCommandsSpeakTLS uses the command line against a server that wants
// certificates, with flags and with variables.
func TestTheCommandsSpeakTLS(t *testing.T) {
	t.Parallel()
	in := certificates(t)
	s := start(t, "--tls-cert", in("server-cert.pem"), "--tls-key", in("server-key.pem"), "--tls-client-ca", in("ca-cert.pem"))
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("the address is %s", s.url)
	}
	run := func(environ []string, args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), environ...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	flags := []string{"--url", s.url, "--tls-ca", in("ca-cert.pem"), "--tls-cert", in("client-worker-cert.pem"), "--tls-key", in("client-worker-key.pem")}
	environ := []string{
		"REPRISE_URL=" + s.url, "REPRISE_CLIENT_TLS_CA=" + in("ca-cert.pem"),
		"REPRISE_CLIENT_TLS_CERT=" + in("client-worker-cert.pem"), "REPRISE_CLIENT_TLS_KEY=" + in("client-worker-key.pem"),
	}
	if out, err := run(nil, append([]string{"enqueue", "--queue", "q", "--type", "t", "--payload", "1"}, flags...)...); err != nil {
		t.Fatalf("enqueue: %v: %s", err, out)
	}
	if out, err := run(environ, "jobs", "list"); err != nil || !strings.Contains(out, "ready") {
		t.Errorf("jobs list: %v: %s", err, out)
	}
	if out, err := run(environ, "work", "--queue", "q", "--exec", "true", "--max", "1"); err != nil {
		t.Errorf("work: %v: %s", err, out)
	}
	for text, args := range map[string][]string{
		"certificate":  {"jobs", "list", "--url", s.url, "--tls-ca", in("ca-cert.pem")}, // of the client: asked for
		"unknown auth": {"jobs", "list", "--url", s.url},
		"go together":  {"jobs", "list", "--url", s.url, "--tls-ca", in("ca-cert.pem"), "--tls-cert", in("client-worker-cert.pem")},
		"no such file": {"jobs", "list", "--url", s.url, "--tls-ca", "none.pem"},
		"in PEM":       {"jobs", "list", "--url", s.url, "--tls-ca", in("ca-key.pem")},
		"HTTPS server": {"jobs", "list", "--url", strings.Replace(s.url, "https", "http", 1)},
	} {
		if out, err := run(nil, args...); err == nil || !strings.Contains(out, text) {
			t.Errorf("%v: want %q, got %v: %s", args, text, err, out)
		}
	}
}
