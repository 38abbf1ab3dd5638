package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// freePort is one that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func sick(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.RootDir, cfg.Port = filepath.Join(t.TempDir(), "root"), freePort(t)
	cfg.DiskReserve = config.DiskReserve{Bytes: 1}
	return cfg
}

// finds wants a finding of a check, with a health and a text.
func finds(t *testing.T, fs Findings, check string, health Health, text string) {
	t.Helper()
	for _, f := range fs {
		if f.Check == check && f.Health == health && strings.Contains(f.Text, text) {
			if health != HealthOK && f.Do == "" {
				t.Errorf("%s does not say what to do: %q", check, f.Text)
			}
			if health == HealthFail && fs.Err() == nil {
				t.Error("a failed check is no error")
			}
			return
		}
	}
	var b strings.Builder
	_ = fs.Write(&b)
	t.Errorf("no %s of %s says %q:\n%s", health, check, text, &b)
}

// store makes the directory, with one job written at a time.
func stored(t *testing.T, dir string, at job.Millis) {
	t.Helper()
	st, err := embedded.Open(embedded.Options{Dir: dir, Now: func() job.Millis { return at }})
	if err != nil {
		t.Fatal(err)
	}
	id := job.NewIDs(job.ID{}, func() uint64 { return 1 }).Next(at)
	commit, err := st.Update(t.Context(), func(tx store.Tx) error {
		tx.Durable()
		j := &job.Job{ID: id, Payload: id, PayloadSize: 1, Queue: "q", Type: "t", State: job.Ready, Created: at, ReadyAt: at, Copies: 1, CopiesWanted: 1}
		return errors.Join(tx.PutPayload(id, []byte("1")), tx.Write(nil, j))
	})
	if err := errors.Join(err, commit.Wait(), st.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestTheDoctorFindsASoundServerSound(t *testing.T) {
	cfg := sick(t)
	finds(t, Doctor(t.Context(), cfg, nil, nil), "directory", HealthWarn, "does not exist")
	if _, err := os.Stat(cfg.RootDir); err == nil {
		t.Error("the doctor made the directory")
	}
	stored(t, cfg.RootDir, engine.SystemClock().Wall())
	fs := Doctor(t.Context(), cfg, nil, nil)
	if fs.Err() != nil {
		t.Errorf("%v: %+v", fs.Err(), fs)
	}
	finds(t, fs, "configuration", HealthOK, "no problems")
	finds(t, fs, "store", HealthOK, "1 jobs (0 scheduled, 1 ready")
	finds(t, fs, "format", HealthOK, strconv.Itoa(embedded.Format))
	finds(t, fs, "port", HealthOK, "is free")
	finds(t, fs, "disk", HealthOK, "free of")
	var b strings.Builder
	if err := fs.WriteJSON(&b); err != nil || !strings.Contains(b.String(), `"health": "ok"`) {
		t.Errorf("%s, %v", &b, err)
	}
}

// Tokens that the store has count as those of the configuration.
func TestTheDoctorKnowsTheTokensOfTheStore(t *testing.T) {
	cfg := sick(t)
	cfg.Host, cfg.BehindTLSProxy = "0.0.0.0", true
	stored(t, cfg.RootDir, 1)
	finds(t, Doctor(t.Context(), cfg, nil, nil), "exposure", HealthFail, "no token")
	st, err := embedded.Open(embedded.Options{Dir: cfg.RootDir, Now: engine.SystemClock().Wall})
	if err != nil {
		t.Fatal(err)
	}
	commit, err := st.Update(t.Context(), func(tx store.Tx) error {
		tx.Durable()
		return tx.Set(&job.Credential{ID: "c1", Name: "root", Scopes: 1})
	})
	if err := errors.Join(err, commit.Wait(), st.Close()); err != nil {
		t.Fatal(err)
	}
	for _, f := range Doctor(t.Context(), cfg, nil, nil) {
		if f.Check == "exposure" {
			t.Errorf("got %+v", f)
		}
	}
}

func TestTheDoctorSaysWhatIsWrong(t *testing.T) {
	now := engine.SystemClock().Wall()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, cfg *config.Config)
		check   string
		health  Health
		text    string
	}{
		"a file in place of the directory": {func(t *testing.T, cfg *config.Config) { put(t, cfg.RootDir, "") }, "directory", HealthFail, "is no directory"},
		"a newer format": {func(t *testing.T, cfg *config.Config) {
			stored(t, cfg.RootDir, now)
			put(t, filepath.Join(cfg.RootDir, "FORMAT"), strconv.Itoa(embedded.Format+1)+"\n")
		}, "format", HealthFail, "knows up to"},
		"no format": {func(t *testing.T, cfg *config.Config) {
			stored(t, cfg.RootDir, now)
			if err := os.Remove(filepath.Join(cfg.RootDir, "FORMAT")); err != nil {
				t.Fatal(err)
			}
		}, "format", HealthFail, "no FORMAT"},
		"a clock behind the store": {func(t *testing.T, cfg *config.Config) { stored(t, cfg.RootDir, now+job.Hour) }, "clock", HealthFail, "ahead of this clock"},
		"what a crash left": {func(t *testing.T, cfg *config.Config) {
			stored(t, cfg.RootDir, now)
			put(t, filepath.Join(cfg.RootDir, "PROBE"), "")
		}, "leftovers", HealthWarn, "PROBE"},
		"a full disk":              {func(_ *testing.T, cfg *config.Config) { cfg.DiskReserve = config.DiskReserve{Percent: 100} }, "disk", HealthFail, "reserve"},
		"a damaged table":          {damaged, "store", HealthFail, ""},
		"somebody else's port":     {foreignPort, "port", HealthFail, "is taken"},
		"a store in use elsewhere": {inUse, "store", HealthOK, "in use"},
		"a server without tokens": {
			func(_ *testing.T, cfg *config.Config) { cfg.Host, cfg.BehindTLSProxy = "0.0.0.0", true },
			"exposure", HealthFail, "0.0.0.0 can be reached from other machines, and there is no token",
		},
		"a server that is open to all": {
			func(_ *testing.T, cfg *config.Config) { cfg.Host, cfg.Insecure = "0.0.0.0", true },
			"exposure", HealthWarn, "there is no TLS and no token",
		},
		"an admin listener without tokens": {
			func(_ *testing.T, cfg *config.Config) {
				cfg.Admin, cfg.AdminListener.Host, cfg.BehindTLSProxy = true, "0.0.0.0", true
			},
			"exposure", HealthFail, "can be reached from other machines, and there is no token",
		},
		"an admin listener that is open to all": {
			func(_ *testing.T, cfg *config.Config) {
				cfg.Admin, cfg.AdminListener.Host, cfg.Insecure = true, "0.0.0.0", true
			},
			"exposure", HealthWarn, "the admin listener: 0.0.0.0 can be reached from other machines, and there is no TLS and no token",
		},
		"somebody else's admin port": {func(t *testing.T, cfg *config.Config) {
			port := cfg.Port
			foreignPort(t, cfg)
			cfg.Admin, cfg.AdminListener.Port, cfg.Port = true, cfg.Port, port
		}, "admin port", HealthFail, "is taken"},
		"an admin listener without its certificate": {
			func(_ *testing.T, cfg *config.Config) {
				cfg.Admin, cfg.AdminListener.TLSCert, cfg.AdminListener.TLSKey = true, "nowhere", "nowhere"
			},
			"admin certificate", HealthFail, "nowhere",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := sick(t)
			c.prepare(t, &cfg)
			finds(t, Doctor(t.Context(), cfg, nil, nil), c.check, c.health, c.text)
		})
	}
	finds(t, Doctor(t.Context(), sick(t), errors.New("port: no"), nil), "configuration", HealthFail, "port: no")
	silent := &Peer{URL: "http://queue", Ready: func(context.Context) error { return errors.New("refused") }}
	finds(t, Doctor(t.Context(), sick(t), nil, silent), "server", HealthFail, "http://queue: refused")
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// damaged changes a byte in the middle of the log's records.
func damaged(t *testing.T, cfg *config.Config) {
	t.Helper()
	stored(t, cfg.RootDir, 1)
	list, err := filepath.Glob(filepath.Join(cfg.RootDir, "data", "*.sst"))
	if err != nil || len(list) == 0 {
		// all is in the log yet: a start and a stop write a table
		stored2, err := embedded.Open(embedded.Options{Dir: cfg.RootDir, Now: func() job.Millis { return 2 }})
		if err != nil {
			t.Fatal(err)
		}
		_ = stored2.Close()
		list, _ = filepath.Glob(filepath.Join(cfg.RootDir, "data", "*.sst"))
	}
	if len(list) == 0 {
		t.Fatal("no table")
	}
	b, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	b[10] ^= 0xff
	put(t, list[0], string(b))
}

func foreignPort(t *testing.T, cfg *config.Config) {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	cfg.Port = s.Listener.Addr().(*net.TCPAddr).Port
}

func inUse(t *testing.T, cfg *config.Config) {
	t.Helper()
	st, err := embedded.Open(embedded.Options{Dir: cfg.RootDir, Now: engine.SystemClock().Wall})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
}

func TestTheDoctorKnowsAServerOfOurs(t *testing.T) {
	cfg := sick(t)
	runs(t, cfg)
	fs := Doctor(t.Context(), cfg, nil, nil)
	finds(t, fs, "port", HealthOK, "is ready")
	finds(t, fs, "store", HealthOK, "in use")
	finds(t, Doctor(t.Context(), cfg, nil, &Peer{URL: "http://queue", Ready: func(context.Context) error { return nil }}), "server", HealthOK, "http://queue is ready")
}

// heard is a log that tells when the server listens.
type heard struct {
	slog.Handler
	listens chan struct{}
}

func (h *heard) Enabled(context.Context, slog.Level) bool { return true }

func (h *heard) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "listening" {
		close(h.listens)
	}
	return nil
}

func TestTheDoctorTellsWhatMayBeCalled(t *testing.T) {
	for _, c := range []struct {
		cfg    config.Config
		health Health
		text   string
	}{
		{config.Config{}, HealthOK, "no target is in the file, and none may be set over the API"},
		{config.Config{Targeting: config.Targeting{EgressAllow: []string{"none"}}}, HealthOK, "no target may be set over the API"},
		{config.Config{Targeting: config.Targeting{EgressAllow: []string{"*.example.com", "10.0.0.0/8"}}}, HealthOK, "may be *.example.com, 10.0.0.0/8"},
		{config.Config{Targeting: config.Targeting{Targets: []string{"http://127.0.0.1:9000/x"}}}, HealthOK, "may be 127.0.0.1:9000"},
		{config.Config{Targeting: config.Targeting{EgressAllow: []string{"0.0.0.0/0"}}}, HealthWarn, "on this machine too"},
		{config.Config{Targeting: config.Targeting{Targets: []string{"http://169.254.169.254/"}}}, HealthFail, "never called"},
	} {
		var fs Findings
		fs.egress(c.cfg)
		finds(t, fs, "egress", c.health, c.text)
	}
}
