package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/reprisehq/reprise/internal/config"
)

// Peer is a server that the doctor is told to ask.
type Peer struct {
	URL   string
	Ready func(context.Context) error // asks whether it is ready
}

// peer asks a server that was named.
func (fs *Findings) peer(ctx context.Context, p *Peer) {
	if err := p.Ready(ctx); err != nil {
		fs.fail("server", "see whether it runs, and its log; GET /ready says what is the matter; or name another with --url", "%s: %v", p.URL, err)
		return
	}
	fs.ok("server", "%s is ready", p.URL)
}

// listening looks who is at the addresses of the configuration.
func (fs *Findings) listening(ctx context.Context, cfg config.Config) {
	if cfg.Unix != "" {
		fs.socket(ctx, cfg.Unix)
	}
	if cfg.TCP {
		fs.port(ctx, "port", "", cfg)
	}
	if cfg.Admin {
		fs.port(ctx, "admin port", "admin-", cfg.AsAdmin())
	}
}

// exposure says who can reach the listeners without being asked who they are. tokens
// says whether there is one, or a server that works has looked.
func (fs *Findings) exposure(cfg config.Config, tokens bool) {
	switch why := cfg.Exposed(tokens || len(cfg.Tokens) > 0); {
	case why == nil:
	case cfg.Insecure:
		fs.warn("exposure", "nothing, if everybody in that network may do everything", "%v", why)
	default:
		fs.fail("exposure", "do one of these; a server with this configuration does not start", "%v", why)
	}
}

func (fs *Findings) socket(ctx context.Context, path string) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
		fs.ok("socket", "%s is free", path)
	case err != nil:
		fs.fail("socket", "let the user of the server read its directory", "%v", err)
	case info.Mode()&os.ModeSocket == 0:
		fs.fail("socket", "name another path with --unix", "%s is there and is no socket", path)
	case !answered(path):
		fs.ok("socket", "%s was left by a server that is gone; the next one replaces it", path)
	default:
		fs.answered("socket", "", path, answers(ctx, "http", "unix", path, nil))
	}
}

// port looks who is at the address of a listener whose flags have the prefix.
func (fs *Findings) port(ctx context.Context, check, prefix string, cfg config.Config) {
	addr := net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port))
	var open net.ListenConfig
	switch l, err := open.Listen(ctx, "tcp", addr); {
	case err == nil:
		_ = l.Close()
		fs.ok(check, "%s is free", addr)
		return
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		fs.fail(check, "give --"+prefix+"host an address of this machine, or 0.0.0.0 for all of them", "this machine does not have the address %s", cfg.Host)
		return
	case errors.Is(err, syscall.EACCES):
		fs.fail(check, "choose a port from 1024 on, or give the server the capability CAP_NET_BIND_SERVICE", "user %d may not listen on %s", os.Geteuid(), addr)
		return
	}
	var own *pinned
	if cfg.TLS() {
		var err error
		if own, err = pin(cfg); err != nil {
			fs.warn(check, "correct the certificate first", "%s is taken; by whom cannot be asked without a certificate", addr)
			return
		}
	}
	err := answers(ctx, cfg.Scheme(), "tcp", addr, own)
	if err != nil && own != nil && own.met && cfg.MutualTLS() {
		fs.ok(check, "a server with this certificate answers at https://%s, to clients with one only: ask it with --url and %s", addr, "REPRISE_CLIENT_TLS_CERT")
		return
	}
	fs.answered(check, prefix, cfg.Scheme()+"://"+addr, err)
}

// answered tells who answers at an address that is taken.
func (fs *Findings) answered(check, prefix, at string, err error) {
	why, ours := errors.AsType[unready](err)
	switch {
	case err == nil:
		fs.ok(check, "a Reprise server answers at %s and is ready", at)
	case ours:
		fs.fail(check, "see its log, and what else is found here", "a Reprise server answers at %s and is not ready: %s", at, string(why))
	default:
		fs.fail(check, "stop what listens there, or choose another --"+prefix+"port"+map[string]string{"": " or --unix", "admin-": ", or --no-admin"}[prefix], "%s is taken by another program: %v", at, err)
	}
}

// unready is why a server takes no work in, in its words.
type unready string

func (u unready) Error() string { return string(u) }

// certificate looks at the certificate of a listener whose settings have the prefix.
func (fs *Findings) certificate(check, prefix string, cfg config.Config) {
	if !cfg.TLS() {
		return
	}
	own, err := pin(cfg)
	if err != nil {
		fs.fail(check, fmt.Sprintf("correct %[1]stls-cert, %[1]stls-key and %[1]stls-client-ca; `reprise tls init` makes some", prefix), "%v", err)
		return
	}
	const renew, day = "make a new one (`reprise tls server-cert --overwrite`), and have it read with SIGHUP", 24 * time.Hour
	from, until := own.NotBefore.UTC().Format(time.RFC3339), own.NotAfter.UTC().Format(time.RFC3339)
	switch now := time.Now(); {
	case now.After(own.NotAfter):
		fs.fail(check, renew, "it ended at %s: clients refuse it", until)
	case now.Before(own.NotBefore):
		fs.fail(check, "set the clock, or wait", "it begins at %s: clients refuse it", from)
	case own.NotAfter.Sub(now) < 14*day && own.NotAfter.Sub(now) < own.NotAfter.Sub(own.NotBefore)/3:
		fs.warn(check, renew, "it ends at %s", until)
	default:
		fs.ok(check, "good until %s", until)
	}
}

// pinned is the certificate of the configuration, and whether somebody has
// proved to be its owner.
type pinned struct {
	*x509.Certificate
	met bool
}

func pin(cfg config.Config) (*pinned, error) {
	c, err := LoadCertificates(cfg)
	if err != nil {
		return nil, err
	}
	return &pinned{Certificate: c.current.Load().Certificates[0].Leaf}, nil
}

// client is for connections to the owner of the certificate, whatever it is
// called in there and whoever signed it.
func (p *pinned) client() *tls.Config {
	if p == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // it is compared, which is stricter
		VerifyConnection: func(s tls.ConnectionState) error {
			if !s.PeerCertificates[0].Equal(p.Certificate) {
				return errors.New("it has another certificate than the one of the configuration; a server reads a new one with SIGHUP")
			}
			p.met = true
			return nil
		},
	}
}

// answers asks who listens at an address of this machine whether it is ready.
// One of ours that is not answers with unready.
func answers(ctx context.Context, scheme, network, addr string, own *pinned) error {
	// By a name that every server knows, whatever address it listens on, and
	// past all proxies.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://localhost/ready", http.NoBody)
	if err != nil {
		return err
	}
	way := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		},
		TLSClientConfig: own.client(),
	}
	defer way.CloseIdleConnections()
	resp, err := way.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var said struct{ Status, Error string }
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	if json.Unmarshal(body, &said) != nil || said.Status == "" && said.Error == "" {
		return fmt.Errorf("it answers %s, not as a Reprise server", resp.Status)
	}
	if said.Status != "ready" {
		return unready(said.Error)
	}
	return nil
}
