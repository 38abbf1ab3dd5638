package client

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestATokenGoesWithEveryRequestOverASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan *http.Request, 1)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // of a test
		seen <- r
		_, _ = w.Write([]byte(`{"queues":["a"]}`))
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	t.Setenv("http_proxy", "http://127.0.0.1:1") // would refuse
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	c, err := New("unix://"+path, Options{Token: "rp_x"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if queues, err := c.Queues(t.Context()); err != nil || len(queues) != 1 {
		t.Fatal(queues, err)
	}
	if r := <-seen; r.Header.Get("Authorization") != "Bearer rp_x" || r.Host != "localhost" {
		t.Errorf("got %v, host %s", r.Header, r.Host)
	}
	if c.URL() != "unix://"+path {
		t.Errorf("the address is told as %s", c.URL())
	}
}

func TestAnAddressIsShownWithoutItsPassword(t *testing.T) {
	c, err := New("http://me:hunter2@127.0.0.1:1/", Options{})
	if err != nil || c.URL() != "http://me:xxxxx@127.0.0.1:1" {
		t.Errorf("got %v, %v", c.URL(), err)
	}
	for _, bad := range []string{"ftp://me:hunter2@host", "http://me:hunter2@[", "http://me:hunter2@host?a", "unix://me:hunter2@x/s", "unix://", "unix://host/s", "unix:///s?a", "host"} {
		if _, err := New(bad, Options{}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := c.Queues(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("nobody is there: %v", err)
	}
}
