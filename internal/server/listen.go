package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/httpapi"
)

// opened is a listener and who serves on it.
type opened struct {
	net.Listener
	api          string // primary, admin or unix
	addr, scheme string
	certificates *Certificates // nil = no TLS
	server       *http.Server
}

// openAll opens every listener of the configuration, or none. The primary one is the
// last, so that all are there when it is announced.
func openAll(ctx context.Context, cfg config.Config) (list []*opened, err error) {
	if cfg.Unix != "" {
		l, err := listenUnix(ctx, cfg.Unix)
		if err != nil {
			return nil, err
		}
		list = append(list, &opened{Listener: l, api: "unix", addr: cfg.Unix, scheme: "unix"})
	}
	for _, l := range []struct {
		api    string
		wanted bool
		cfg    config.Config
	}{{"admin", cfg.Admin, cfg.AsAdmin()}, {"primary", cfg.TCP, cfg}} {
		if !l.wanted {
			continue
		}
		o, err := listen(ctx, l.api, l.cfg)
		if err != nil {
			for _, o := range list {
				err = errors.Join(err, o.Close())
			}
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// listen opens a TCP listener, and reads the certificates if it speaks TLS.
func listen(ctx context.Context, api string, cfg config.Config) (o *opened, err error) {
	o = &opened{api: api, scheme: cfg.Scheme()}
	if cfg.TLS() {
		if o.certificates, err = LoadCertificates(cfg); err != nil {
			return nil, err
		}
	}
	// Accepted connections inherit what is set on the listening socket.
	open := net.ListenConfig{Control: userTimeout(cfg.TCPUserTimeout)}
	if o.Listener, err = open.Listen(ctx, "tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port))); err != nil {
		flag := map[string]string{"admin": "--admin-port, or give --no-admin", "primary": "--port"}[api]
		return nil, fmt.Errorf("listening: %w; is another server running? Choose another port with %s", err, flag)
	}
	o.addr = o.Addr().String()
	return o, nil
}

// serve accepts until the server is shut down. A TLS handshake belongs to its
// connection, has the time of a header (httpapi.NewServer), and holds up nobody.
func (o *opened) serve(crowd *httpapi.Crowd) error {
	if o.certificates == nil {
		return o.server.Serve(crowd.Limit(o.Listener, true))
	}
	o.server.TLSConfig = o.certificates.Config()
	return o.server.ServeTLS(crowd.Limit(o.Listener, false), "", "")
}
