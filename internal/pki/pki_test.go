package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func usual(dir string) Options {
	return Options{
		Dir: dir, Now: now, NewCA: true, CAName: "Test CA", CADays: 3650,
		Server: true, Names: []string{"localhost", "127.0.0.1", "::1", "*.queue.example"}, Clients: []string{"w1", "w2"}, Days: 365,
	}
}

func made(t *testing.T, o Options) {
	t.Helper()
	if _, err := Make(o); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, dir, certName, keyName, host string, at time.Time, use x509.ExtKeyUsage) error {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certName), filepath.Join(dir, keyName))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, CACert))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use}})
	return err
}

func TestCertificatesHoldForWhatTheyAreMadeFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "tls")
	made(t, usual(dir))
	const server, client = x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	for _, c := range []struct {
		cert, key, host string
		at              time.Time
		use             x509.ExtKeyUsage
		ok              bool
	}{
		{ServerCert, ServerKey, "localhost", now, server, true},
		{ServerCert, ServerKey, "127.0.0.1", now, server, true},
		{ServerCert, ServerKey, "::1", now, server, true},
		{ServerCert, ServerKey, "a.queue.example", now.AddDate(0, 0, 364), server, true},
		{ServerCert, ServerKey, "queue.example", now, server, false},
		{ServerCert, ServerKey, "127.0.0.2", now, server, false},
		{ServerCert, ServerKey, "localhost", now.AddDate(0, 0, 366), server, false},
		{ServerCert, ServerKey, "localhost", now.Add(-2 * time.Hour), server, false},
		{ServerCert, ServerKey, "", now, client, false},
		{ClientCert("w1"), ClientKey("w1"), "", now, client, true},
		{ClientCert("w2"), ClientKey("w2"), "", now, client, true},
		{ClientCert("w1"), ClientKey("w1"), "", now, server, false},
	} {
		if err := verify(t, dir, c.cert, c.key, c.host, c.at, c.use); (err == nil) != c.ok {
			t.Errorf("%s for %q, use %v, at %s: %v", c.cert, c.host, c.use, c.at, err)
		}
	}
	for name, mode := range map[string]os.FileMode{
		CACert: 0o644, CAKey: 0o600, ServerCert: 0o644, ServerKey: 0o600, ClientKey("w1"): 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm()&^mode != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestNothingIsWrittenOver(t *testing.T) {
	dir := t.TempDir()
	made(t, usual(dir))
	before, err := os.ReadFile(filepath.Join(dir, CAKey))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, ServerKey)); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(usual(dir)); err == nil || !strings.Contains(err.Error(), "ca-cert.pem exists") {
		t.Errorf("a second time: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, ServerKey)); err == nil {
		t.Error("some of it was written")
	}
	o := usual(dir)
	o.Overwrite = true
	made(t, o)
	if after, err := os.ReadFile(filepath.Join(dir, CAKey)); err != nil || string(after) == string(before) {
		t.Errorf("with overwrite it is the old one: %v", err)
	}
}

func TestAnAuthorityServesLaterCertificates(t *testing.T) {
	dir := t.TempDir()
	made(t, usual(dir))
	later := Options{
		Dir: dir, Now: now, CACert: filepath.Join(dir, CACert), CAKey: filepath.Join(dir, CAKey), Clients: []string{"w3"}, Days: 30,
	}
	made(t, later)
	if err := verify(t, dir, ClientCert("w3"), ClientKey("w3"), "", now, x509.ExtKeyUsageClientAuth); err != nil {
		t.Error(err)
	}
	other := t.TempDir()
	made(t, usual(other))
	for text, change := range map[string]func(*Options){
		"ends on 2036":                func(o *Options) { o.Days = 4000 },
		"is not the key of":           func(o *Options) { o.CAKey = filepath.Join(other, CAKey) },
		"is no authority":             func(o *Options) { o.CACert, o.CAKey = filepath.Join(dir, ServerCert), filepath.Join(dir, ServerKey) },
		"no such file":                func(o *Options) { o.CACert = filepath.Join(dir, "none") },
		`PEM block "PRIVATE KEY"`:     func(o *Options) { o.CAKey = o.CACert },
		"is no name for a client":     func(o *Options) { o.Clients = []string{"../x"} },
		"is named twice":              func(o *Options) { o.Clients = []string{"a", "a"} },
		"is no host name":             func(o *Options) { o.Server, o.Names = true, []string{"http://x"} },
		"at least one name":           func(o *Options) { o.Server = true },
		"from 1 to 36500 days":        func(o *Options) { o.Days = 0 },
		"client-w3-cert.pem exists; ": func(*Options) {},
	} {
		o := later
		change(&o)
		if paths, err := Make(o); err == nil || !strings.Contains(err.Error(), text) || paths != nil {
			t.Errorf("want %q, got %v, wrote %v", text, err, paths)
		}
	}
}
