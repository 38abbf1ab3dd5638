package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// LoadTLS reads what Options.TLS needs from files in PEM. authorities are whom
// to trust beside nobody else; "" = those of the system. cert and key are what
// the client proves itself with to a server that asks (--tls-client-ca); both
// or neither. With none of the three it returns nil, which is the default.
func LoadTLS(authorities, cert, key string) (*tls.Config, error) {
	if authorities == "" && cert == "" && key == "" {
		return nil, nil
	}
	if (cert == "") != (key == "") {
		return nil, fmt.Errorf("a client's certificate and its key go together; only one was given: %q", cert+key)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		text, err := os.ReadFile(authorities)
		if err != nil {
			return nil, fmt.Errorf("reading the authorities to trust: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("reading the authorities to trust: %s holds no certificate in PEM", authorities)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("reading the client's certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
