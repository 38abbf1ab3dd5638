package compat

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
)

// subjects are the parts of the suite, numbered as in the compatibility list
// of the reference.
var subjects = []struct {
	name string
	test func(c *client)
}{
	{"1 negotiation", negotiation},
	{"2 enqueue", enqueueing},
	{"2 enqueue refuses", enqueueRefuses},
	{"3 numbers", numbers},
	{"4 bulk", bulk},
	{"5 list", listing},
	{"6 jq", filters},
	{"7 take order", takeOrder},
	{"7 take formats", takeFormats},
	{"7 take prefetch", takePrefetch},
	{"7 take shares nothing", takeSharesNothing},
	{"7 take disconnect", takeDisconnect},
	{"7 take headers and heartbeats", takeHeartbeats},
	{"8 success", success},
	{"8 success in bulk", bulkSuccess},
	{"9 failure", failing},
	{"9 failure records", failureRecords},
	{"9 backoff", backoffVectors},
	{"10 patch", patching},
	{"11 unique", unique},
	{"12 batch", batching},
	{"13 cron", crons},
	{"17 budgets", budgeting},
}

// TestZizqCompatibility runs every subject for every pair of transport and
// format. Names of tests are names of queues, so a server serves all.
func TestZizqCompatibility(t *testing.T) {
	t.Parallel()
	plain := start(t)
	in := certificates(t)
	secure := start(t, "--tls-cert", in("server-cert.pem"), "--tls-key", in("server-key.pem"), "--tls-client-ca", in("ca-cert.pem"))
	trusted := clientTLS(t, in)
	for _, way := range []struct {
		name   string
		server *server
		h2     bool
		tls    *tls.Config
	}{
		{"h1", plain, false, nil},
		{"h2c", plain, true, nil},
		{"tls h1", secure, false, trusted},
		{"tls h2", secure, true, trusted},
	} {
		for name, format := range map[string]string{"json": mediaJSON, "msgpack": mediaMsgpack} {
			t.Run(way.name+" "+name, func(t *testing.T) {
				t.Parallel()
				for _, s := range subjects {
					t.Run(s.name, func(t *testing.T) { s.test(newClient(t, way.server, way.h2, format, way.tls)) })
				}
			})
		}
	}
}

func clientTLS(t testing.TB, in func(string) string) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(in("ca-cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(in("client-worker-cert.pem"), in("client-worker-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}}
	c.RootCAs.AppendCertsFromPEM(text)
	return c
}
