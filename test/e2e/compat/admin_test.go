package compat

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// TestTheAdminListener does what `zizq top`, `zizq backup` and `zizq compact` do, on
// a listener of its own, plain and with certificates, and top on the primary one.
func TestTheAdminListener(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		s := start(t, "--admin-port", "0")
		adminCalls(t, s, http.DefaultClient)
		top(t, s.url, http.DefaultClient)
	})
	t.Run("with certificates", func(t *testing.T) {
		in := certificates(t)
		s := start(t, "--admin-port", "0", "--admin-tls-cert", in("server-cert.pem"), "--admin-tls-key", in("server-key.pem"), "--admin-tls-client-ca", in("ca-cert.pem"))
		if !strings.HasPrefix(s.admin, "https://") || !strings.HasPrefix(s.url, "http://") {
			t.Fatal(s.admin, s.url)
		}
		own, err := tls.LoadX509KeyPair(in("client-worker-cert.pem"), in("client-worker-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(in("ca-cert.pem"))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(text)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}}
		defer transport.CloseIdleConnections()
		adminCalls(t, s, &http.Client{Transport: transport})
		stranger := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
		defer stranger.CloseIdleConnections()
		if resp, err := (&http.Client{Transport: stranger}).Post(s.admin+"/compact", "", nil); err == nil {
			_ = resp.Body.Close()
			t.Error("a client without a certificate is let in")
		}
	})
}

func adminCalls(t *testing.T, s *server, client *http.Client) {
	t.Helper()
	top(t, s.admin, client)
	for _, c := range []struct {
		method, path, host string
		status             int
	}{
		{"POST", "/compact", "", 204},
		{"POST", "/backup", "", 200},
		{"GET", "/jobs", "", 404},
		{"POST", "/reset", "", 404},
		{"POST", "/compact", "evil.example", 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, s.admin+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s %s: %d %.200s %v", c.method, c.path, resp.StatusCode, body, err)
		}
		if c.path == "/backup" {
			if z, err := gzip.NewReader(bytes.NewReader(body)); err != nil || resp.Header.Get("Content-Type") != "application/gzip" {
				t.Errorf("the backup is no gzip: %v", err)
			} else if _, err := io.Copy(io.Discard, z); err != nil { //nolint:gosec // of our own
				t.Error(err)
			}
		}
	}
}

// top connects, reads the snapshot, and sees a job come.
func top(t *testing.T, url string, client *http.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, url+"/events", &websocket.DialOptions{HTTPClient: client}) //nolint:bodyclose // of an upgrade it is the connection
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.CloseNow() }()
	for _, want := range []string{"job_snapshot", "heartbeat"} {
		var f struct {
			Event  string
			Server struct{ Version, Tier string }
			Ready  *struct{ Items []any }
		}
		_, text, err := c.Read(ctx)
		if err == nil {
			err = json.Unmarshal(text, &f)
		}
		if err != nil || f.Event != want || f.Server.Tier != "enterprise" || (f.Ready == nil) != (want == "heartbeat") {
			t.Fatalf("%s, %v, not %s", text, err, want)
		}
	}
}
