package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/pki"
)

// certs makes certificates in a directory and returns how to name them.
func certs(t *testing.T, dir string, overwrite bool) func(name string) string {
	t.Helper()
	_, err := pki.Make(pki.Options{
		Dir: dir, Now: time.Now(), NewCA: true, CAName: "CA", CADays: 2, Days: 1, Overwrite: overwrite,
		Server: true, Names: []string{"127.0.0.1"}, Clients: []string{"w"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) string { return filepath.Join(dir, name) }
}

// listenTLS serves a handler that answers with the protocol and the client's name.
func listenTLS(t *testing.T, files config.TLSFiles) (addr string, certificates *Certificates) {
	t.Helper()
	cfg := config.Config{Listening: config.Listening{Listener: config.Listener{Host: "127.0.0.1", TLSFiles: files}}}
	o, err := listen(t.Context(), "primary", cfg)
	if err != nil {
		t.Fatal(err)
	}
	o.server = httpapi.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, r.Proto+" "+name)
	}))
	o.server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	done := make(chan error, 1)
	go func() { done <- o.serve(&httpapi.Crowd{Total: 1000, PerAddress: 1000}) }()
	t.Cleanup(func() {
		_ = o.server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return o.addr, o.certificates
}

// get asks once, over a connection of its own.
func get(t *testing.T, addr string, h2 bool, c *tls.Config) (string, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: c, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!h2)
	transport.Protocols.SetHTTP2(h2)
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// trust makes a client's configuration; client is its certificate or "".
func trust(t *testing.T, in func(string) string, client string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(in(pki.CACert))
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(text)
	if client != "" {
		pair, err := tls.LoadX509KeyPair(in(pki.ClientCert(client)), in(pki.ClientKey(client)))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

func TestTLSSpeaksBothProtocolsAndNothingOld(t *testing.T) {
	in := certs(t, t.TempDir(), false)
	addr, _ := listenTLS(t, config.TLSFiles{TLSCert: in(pki.ServerCert), TLSKey: in(pki.ServerKey)})
	for h2, want := range map[bool]string{false: "HTTP/1.1 nobody", true: "HTTP/2.0 nobody"} {
		if got, err := get(t, addr, h2, trust(t, in, "")); got != want || err != nil {
			t.Errorf("got %q, %v, want %s", got, err, want)
		}
	}
	old := trust(t, in, "")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if got, err := get(t, addr, false, old); err == nil {
		t.Errorf("TLS 1.1 is answered with %q", got)
	}
	if got, err := get(t, addr, false, &tls.Config{}); err == nil {
		t.Errorf("somebody who does not trust the authority got %q", got)
	}
}

func TestAClientNeedsACertificateOfTheAuthority(t *testing.T) {
	in, strangers := certs(t, t.TempDir(), false), certs(t, t.TempDir(), false)
	addr, _ := listenTLS(t, config.TLSFiles{TLSCert: in(pki.ServerCert), TLSKey: in(pki.ServerKey), TLSClientCA: in(pki.CACert)})
	for _, h2 := range []bool{false, true} {
		if got, err := get(t, addr, h2, trust(t, in, "w")); !strings.HasSuffix(got, " w") || err != nil {
			t.Errorf("with a certificate: %q, %v", got, err)
		}
		if got, err := get(t, addr, h2, trust(t, in, "")); err == nil {
			t.Errorf("without a certificate it is answered %q", got)
		}
		foreign := trust(t, in, "")
		foreign.Certificates = trust(t, strangers, "w").Certificates
		if got, err := get(t, addr, h2, foreign); err == nil {
			t.Errorf("with a certificate of another authority it is answered %q", got)
		}
	}
}

func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	in := certs(t, dir, false)
	addr, certificates := listenTLS(t, config.TLSFiles{TLSCert: in(pki.ServerCert), TLSKey: in(pki.ServerKey), TLSClientCA: in(pki.CACert)})
	before := trust(t, in, "w")
	if _, err := get(t, addr, true, before); err != nil {
		t.Fatal(err)
	}
	certs(t, dir, true)
	if _, err := get(t, addr, true, before); err != nil {
		t.Errorf("new files count before they are read: %v", err)
	}
	if err := certificates.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, addr, true, trust(t, in, "w")); err != nil {
		t.Errorf("the new files do not count: %v", err)
	}
	if got, err := get(t, addr, true, before); err == nil {
		t.Errorf("the old authority still counts: %q", got)
	}
	if err := os.WriteFile(in(pki.CACert), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := certificates.Reload()
	if err == nil || !strings.Contains(err.Error(), "holds no certificate in PEM") {
		t.Errorf("nonsense is read as %v", err)
	}
	if err := os.Remove(in(pki.ServerKey)); err != nil {
		t.Fatal(err)
	}
	if err := certificates.Reload(); err == nil || !strings.Contains(err.Error(), "tls-key") {
		t.Errorf("a missing key is read as %v", err)
	}
}

// A client that opens connections and never begins the handshake holds up
// nobody: not those who come after it.
func TestAHandshakeHoldsUpNobody(t *testing.T) {
	in := certs(t, t.TempDir(), false)
	addr, _ := listenTLS(t, config.TLSFiles{TLSCert: in(pki.ServerCert), TLSKey: in(pki.ServerKey)})
	dialer := net.Dialer{}
	for range 20 {
		silent, err := dialer.DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = silent.Close() }()
	}
	if _, err := get(t, addr, true, trust(t, in, "")); err != nil {
		t.Error(err)
	}
}

func TestPlainHTTPOnATLSPortIsToldSo(t *testing.T) {
	in := certs(t, t.TempDir(), false)
	addr, _ := listenTLS(t, config.TLSFiles{TLSCert: in(pki.ServerCert), TLSKey: in(pki.ServerKey)})
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, "400") {
		t.Errorf("got %q", line)
	}
}

func TestBadCertificatesEndTheStart(t *testing.T) {
	in := certs(t, t.TempDir(), false)
	for text, files := range map[string]config.TLSFiles{
		"no such file":      {TLSCert: "none.pem", TLSKey: in(pki.ServerKey)},
		"does not match":    {TLSCert: in(pki.ServerCert), TLSKey: in(pki.CAKey)},
		"tls-client-ca: op": {TLSCert: in(pki.ServerCert), TLSKey: in(pki.ServerKey), TLSClientCA: "none.pem"},
		"in PEM":            {TLSCert: in(pki.ServerCert), TLSKey: in(pki.ServerKey), TLSClientCA: in(pki.ServerKey)},
	} {
		cfg := config.Config{Listening: config.Listening{Listener: config.Listener{Host: "127.0.0.1", TLSFiles: files}}}
		_, err := listen(context.Background(), "primary", cfg)
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
