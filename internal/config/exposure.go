package config

import (
	"errors"
	"fmt"
	"strings"
)

// Exposed tells what is missing before a server may be reached from other
// machines at any of its listeners: tokens, or certificates of clients, and TLS. It
// is nil if nothing is. tokens says whether there is one.
func (c Config) Exposed(tokens bool) error {
	if err := c.reachable(tokens); err != nil || !c.Admin {
		return err
	}
	if err := c.AsAdmin().reachable(tokens); err != nil {
		return fmt.Errorf("the admin listener: %w", err)
	}
	return nil
}

// reachable does so for the primary listener.
func (c Config) reachable(tokens bool) error {
	beyond := c.TCP && !loopback(c.Host)
	var missing, todo []string
	if beyond && !c.TLS() && !c.BehindTLSProxy {
		missing = append(missing, "TLS")
		todo = append(todo, "give tls-cert and tls-key, or --behind-tls-proxy if a proxy in front of this server speaks TLS")
	}
	if (beyond || c.BehindTLSProxy) && !tokens && !c.MutualTLS() {
		missing = append(missing, "token")
		todo = append(todo, `make a token with "reprise token create --name root --scope admin" while the server listens on loopback without --behind-tls-proxy, or give one in the file under auth.tokens`)
	}
	if len(missing) == 0 {
		return nil
	}
	where, last := c.Host, "; or listen on 127.0.0.1; or give --insecure if the network is trusted"
	if !beyond {
		where, last = "through its proxy the server", "; or give --insecure if the network is trusted"
	}
	return errors.New(where + " can be reached from other machines, and there is no " + strings.Join(missing, " and no ") +
		": everybody who can connect could read and change all work; " + strings.Join(todo, "; and ") + last)
}

// TLS reports whether the listener speaks TLS.
func (c Config) TLS() bool { return c.TLSCert != "" }

// MutualTLS reports whether a client is let in only with a certificate of
// Config.TLSClientCA.
func (c Config) MutualTLS() bool { return c.TLS() && c.TLSClientCA != "" }

// Scheme is how addresses of this server begin.
func (c Config) Scheme() string {
	if c.TLS() {
		return "https"
	}
	return "http"
}
