package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/config"
)

// Certificates are what the listener proves itself with and whom it trusts,
// read from the files of a Config. Handshakes that begin after a Reload use
// what it read; connections stay as they are.
type Certificates struct {
	cert, key, clientCA string // paths
	current             atomic.Pointer[tls.Config]
}

// LoadCertificates reads the files named by cfg, whose TLS is on.
func LoadCertificates(cfg config.Config) (*Certificates, error) {
	c := &Certificates{cert: cfg.TLSCert, key: cfg.TLSKey, clientCA: cfg.TLSClientCA}
	return c, c.Reload()
}

// Reload reads the files again. On an error the old ones stay in use.
func (c *Certificates) Reload() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("reading tls-cert and tls-key: %w", err)
	}
	now := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if c.clientCA != "" {
		text, err := os.ReadFile(c.clientCA)
		if err != nil {
			return fmt.Errorf("reading tls-client-ca: %w", err)
		}
		now.ClientCAs, now.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !now.ClientCAs.AppendCertsFromPEM(text) {
			return errors.New("reading tls-client-ca: " + c.clientCA + " holds no certificate in PEM")
		}
		// A resumed session would outlive the removal of its authority.
		now.SessionTicketsDisabled = true
	}
	c.current.Store(now)
	return nil
}

// Config is for a listener. Each handshake asks for the files read last.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		// Never reached: GetConfigForClient always answers. net/http wants to see
		// that there is a certificate.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &c.current.Load().Certificates[0], nil
		},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load(), nil },
	}
}
