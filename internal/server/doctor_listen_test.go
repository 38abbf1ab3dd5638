package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/pki"
)

// runs runs a server until the test ends.
func runs(t *testing.T, cfg config.Config) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listens, done := make(chan struct{}), make(chan error, 1)
	cfg.Log = slog.New(&heard{Handler: slog.DiscardHandler, listens: listens})
	go func() { done <- Run(ctx, cfg) }()
	select {
	case <-listens:
	case err := <-done:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A server is asked at the address where it listens, however that is: on all
// addresses, on a socket, with a certificate.
func TestTheDoctorAsksAServerWhereverItListens(t *testing.T) {
	dir := t.TempDir()
	name := certs(t, filepath.Join(dir, "tls"), false)
	withTLS := func(c *config.Config) { c.TLSCert, c.TLSKey = name(pki.ServerCert), name(pki.ServerKey) }
	for what, c := range map[string]struct {
		edit        func(c *config.Config)
		check, text string
	}{
		"on all addresses":             {func(c *config.Config) { c.Host, c.Insecure = "0.0.0.0", true }, "port", "a Reprise server answers at http://0.0.0.0:"},
		"with TLS":                     {withTLS, "port", "a Reprise server answers at https://"},
		"with certificates of clients": {func(c *config.Config) { withTLS(c); c.TLSClientCA = name(pki.CACert) }, "port", "to clients with one only"},
		"on a socket":                  {func(c *config.Config) { c.TCP, c.Unix = false, filepath.Join(dir, "s") }, "socket", "is ready"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // nobody in between
			cfg := sick(t)
			c.edit(&cfg)
			runs(t, cfg)
			fs := Doctor(t.Context(), cfg, nil, nil)
			if fs.Err() != nil {
				t.Errorf("%v: %+v", fs.Err(), fs)
			}
			finds(t, fs, c.check, HealthOK, c.text)
		})
	}
}

func TestTheDoctorTellsWhyAnAddressCannotBeHad(t *testing.T) {
	dir := t.TempDir()
	for what, c := range map[string]struct {
		edit   func(c *config.Config)
		check  string
		health Health
		text   string
	}{
		"of another machine": {func(c *config.Config) { c.Host = "192.0.2.1" }, "port", HealthFail, "this machine does not have the address 192.0.2.1"},
		"a file":             {func(c *config.Config) { c.Unix = emptyFile(t, filepath.Join(dir, "file")) }, "socket", HealthFail, "is no socket"},
		"left behind":        {func(c *config.Config) { c.Unix = deadSocket(t, filepath.Join(dir, "dead")) }, "socket", HealthOK, "was left by a server that is gone"},
		"not there":          {func(c *config.Config) { c.Unix = filepath.Join(dir, "none") }, "socket", HealthOK, "is free"},
		"not ready":          {func(c *config.Config) { c.Port = full(t) }, "port", HealthFail, "and is not ready: the disk is below its reserve"},
		"of another program": {func(c *config.Config) { c.Unix = foreignSocket(t, filepath.Join(dir, "other")) }, "socket", HealthFail, "not as a Reprise server"},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := sick(t)
			c.edit(&cfg)
			finds(t, Doctor(t.Context(), cfg, nil, nil), c.check, c.health, c.text)
		})
	}
}

// full is the port of a server whose disk has no room.
func full(t *testing.T) int {
	t.Helper()
	cfg := sick(t)
	cfg.DiskReserve = config.DiskReserve{Percent: 100}
	runs(t, cfg)
	return cfg.Port
}

func emptyFile(t *testing.T, path string) string {
	t.Helper()
	put(t, path, "")
	return path
}

func deadSocket(t *testing.T, path string) string {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	return path
}

func foreignSocket(t *testing.T, path string) string {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.NotFoundHandler()}} //nolint:gosec // of a test
	s.Start()
	t.Cleanup(s.Close)
	return path
}

func TestTheDoctorLooksAtTheCertificate(t *testing.T) {
	look := func(from time.Time, days int) (config.Config, Findings) {
		dir := t.TempDir()
		if _, err := pki.Make(pki.Options{
			Dir: dir, Now: from, NewCA: true, CAName: "CA", CADays: 400, Days: days, Server: true, Names: []string{"127.0.0.1"},
		}); err != nil {
			t.Fatal(err)
		}
		cfg := sick(t)
		cfg.TLSCert, cfg.TLSKey = filepath.Join(dir, pki.ServerCert), filepath.Join(dir, pki.ServerKey)
		return cfg, Doctor(t.Context(), cfg, nil, nil)
	}
	const day = 24 * time.Hour
	now := time.Now()
	cfg, fs := look(now, 100)
	finds(t, fs, "certificate", HealthOK, "good until")
	_, fs = look(now, 5) // made to be short
	finds(t, fs, "certificate", HealthOK, "good until")
	_, fs = look(now.Add(-90*day), 100)
	finds(t, fs, "certificate", HealthWarn, "it ends at")
	_, fs = look(now.Add(-101*day), 100)
	finds(t, fs, "certificate", HealthFail, "it ended at")
	_, fs = look(now.Add(3*day), 100)
	finds(t, fs, "certificate", HealthFail, "it begins at")

	// Another server has the port, or ours has not read its new certificate.
	runs(t, cfg)
	other, _ := look(now, 100)
	other.Port = cfg.Port
	fs = Doctor(t.Context(), other, nil, nil)
	finds(t, fs, "port", HealthFail, ":"+strconv.Itoa(cfg.Port)+" is taken by another program: ")
	finds(t, fs, "port", HealthFail, "it has another certificate")
	if err := os.Remove(other.TLSCert); err != nil {
		t.Fatal(err)
	}
	fs = Doctor(t.Context(), other, nil, nil)
	finds(t, fs, "certificate", HealthFail, "no such file")
	finds(t, fs, "port", HealthWarn, "without a certificate")
}
