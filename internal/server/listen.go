package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// listen opens the primary listener, and reads the certificates if it speaks
// TLS (else nil).
func listen(ctx context.Context, cfg Config) (net.Listener, *Certificates, error) {
	var certificates *Certificates
	if cfg.TLS() {
		var err error
		if certificates, err = LoadCertificates(cfg); err != nil {
			return nil, nil, err
		}
	}
	// Accepted connections inherit what is set on the listening socket.
	open := net.ListenConfig{Control: userTimeout(cfg.TCPUserTimeout)}
	listener, err := open.Listen(ctx, "tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port)))
	if err != nil {
		return nil, nil, fmt.Errorf("listening: %w; is another server running? Choose another port with --port", err)
	}
	return listener, certificates, nil
}

// serve accepts until the server is shut down. A TLS handshake belongs to its
// connection, has the time of a header (httpapi.NewServer), and holds up nobody.
func serve(srv *http.Server, listener net.Listener, certificates *Certificates) error {
	if certificates == nil {
		return srv.Serve(listener)
	}
	srv.TLSConfig = certificates.Config()
	return srv.ServeTLS(listener, "", "")
}
