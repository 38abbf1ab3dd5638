// Package ship sends chunks of records (internal/record) to servers over HTTP:
// to any server (HTTP), and to the bulk interface of Elasticsearch (ES).
//
// A batch holds one message: its type is the tag, its body is a chunk. What the
// server says of the chunk, or of each record of it, is told as it is; what
// becomes of it is not decided here. Redirects are not followed, and nothing is
// sent again.
//
// A chunk that is too large for the server is released in two halves. A chunk
// that is broken is released as far as it is whole, and the end of it dies.
package ship

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/reply"
)

// Target is a server and how it is reached. The comments name the properties.
type Target struct {
	Host string // host
	Port int    // port
	TLS  TLS

	User     string // http_user; "" = no authentication
	Password string // http_passwd

	ConnectTimeout  time.Duration // net.connect_timeout: until a connection stands
	ResponseTimeout time.Duration // http.response_timeout: from then until the answer was read
	Keepalive       bool          // net.keepalive
	KeepaliveIdle   time.Duration // net.keepalive_idle_timeout
	Proxy           string        // proxy: http://HOST:PORT; "" = none

	Mask []string // other secrets, which are not kept of an answer; the passwords here are known
}

// TLS says how a connection is protected.
type TLS struct {
	On             bool   // tls
	Verify         bool   // tls.verify: the certificate of the server
	VerifyHostname bool   // tls.verify_hostname: that it is for this host
	VHost          string // tls.vhost: for that name instead of the host
	CAFile         string // tls.ca_file; "" = the authorities that the machine trusts
	CertFile       string // tls.crt_file, of the client
	KeyFile        string // tls.key_file
}

// DefaultTarget has the defaults of Fluent Bit, but verifies the name in a
// certificate too.
func DefaultTarget() Target {
	return Target{
		Host: "127.0.0.1", TLS: TLS{Verify: true, VerifyHostname: true},
		ConnectTimeout: 10 * time.Second, ResponseTimeout: time.Minute,
		Keepalive: true, KeepaliveIdle: 30 * time.Second,
	}
}

// Bounds.
const (
	TimeoutMax     = time.Hour
	headerBytesMax = 64 << 10 // of an answer
	idleMax        = 16       // connections that are kept
)

// client sends requests to one target.
type client struct {
	http    *http.Client
	base    string // scheme, host and port
	header  http.Header
	mask    *strings.Replacer
	timeout time.Duration // of a whole delivery
}

// newClient checks a target and makes its client. header is sent with each request.
func newClient(t *Target, header http.Header, faults *connect.Faults) *client {
	host := strings.TrimSuffix(strings.TrimPrefix(t.Host, "["), "]")
	address := net.JoinHostPort(host, strconv.Itoa(t.Port))
	if u, err := url.Parse("http://" + address); err != nil || u.Hostname() != host || host == "" {
		faults.Add("host", "is %q, which is no name or address of a host", t.Host)
	}
	if t.Port < 1 || t.Port > 65535 {
		faults.Add("port", "is %d; it must be between 1 and 65535", t.Port)
	}
	for _, span := range []struct {
		property string
		value    time.Duration
	}{{"net.connect_timeout", t.ConnectTimeout}, {"http.response_timeout", t.ResponseTimeout}, {"net.keepalive_idle_timeout", t.KeepaliveIdle}} {
		if span.value <= 0 || span.value > TimeoutMax {
			faults.Add(span.property, "is %s; it must be more than 0 and at most %s", span.value, TimeoutMax)
		}
	}
	transport := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: t.ConnectTimeout}).DialContext,
		TLSHandshakeTimeout:    t.ConnectTimeout,
		TLSClientConfig:        t.TLS.config(host, faults),
		DisableKeepAlives:      !t.Keepalive,
		IdleConnTimeout:        t.KeepaliveIdle,
		MaxIdleConnsPerHost:    idleMax,
		MaxResponseHeaderBytes: headerBytesMax,
		DisableCompression:     true, // what is read is bounded as it comes
	}
	if t.Proxy != "" {
		proxy, err := url.Parse(t.Proxy)
		if err != nil || proxy.Scheme != "http" || proxy.Host == "" {
			faults.Add("proxy", "must be written as http://HOST:PORT")
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	c := &client{base: "http://" + address, header: header, timeout: t.ConnectTimeout + t.ResponseTimeout}
	if t.TLS.On {
		c.base = "https://" + address
	}
	if t.User != "" {
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(t.User+":"+t.Password)))
	}
	c.mask = reply.Masks(append([]string{t.Password, header.Get("Authorization")}, t.Mask...))
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// config reads the files, also if TLS is off, so that what is wrong is told at once.
func (t *TLS) config(host string, faults *connect.Faults) *tls.Config {
	c := &tls.Config{ServerName: host, InsecureSkipVerify: !t.Verify}
	if t.VHost != "" {
		c.ServerName = t.VHost
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		c.RootCAs = x509.NewCertPool()
		if err != nil {
			faults.Add("tls.ca_file", "cannot be read: %v", err)
		} else if !c.RootCAs.AppendCertsFromPEM(pem) {
			faults.Add("tls.ca_file", "is %q, which holds no certificate in PEM", t.CAFile)
		}
	}
	switch {
	case (t.CertFile == "") != (t.KeyFile == ""):
		faults.Add("tls.crt_file", "and tls.key_file must be given together")
	case t.CertFile != "":
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			faults.Add("tls.crt_file", "and tls.key_file cannot be used: %v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if t.Verify && !t.VerifyHostname {
		c.InsecureSkipVerify = true // and verified here, without the name
		c.VerifyConnection = func(s tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
			for _, cert := range s.PeerCertificates[1:] {
				o.Intermediates.AddCert(cert)
			}
			_, err := s.PeerCertificates[0].Verify(o)
			return err
		}
	}
	return c
}

// do sends a body and has the answer read. The result is nil if there was an
// answer that could be read.
func (c *client) do(ctx context.Context, method, uri string, header http.Header, b *body, read func(*http.Response) error) *connect.Result {
	own, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(own, method, c.base+uri, http.NoBody)
	if err != nil {
		return c.unanswered(ctx, own, err)
	}
	b.attach(req)
	req.Header = header
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unanswered(ctx, own, err)
	}
	err = read(resp)
	_ = resp.Body.Close() // it was read as far as is wanted
	switch {
	case errors.Is(err, errAnswer):
		return c.unanswered(ctx, own, err)
	case err != nil:
		return c.unanswered(ctx, own, fmt.Errorf("the answer broke off: %w", err))
	}
	return nil
}

// errAnswer is what makes an answer say nothing.
var errAnswer = errors.New("the answer cannot be understood")

// unanswered is the result when there is no answer. ctx is the caller's, own
// ends at the timeout too.
func (c *client) unanswered(ctx, own context.Context, err error) *connect.Result {
	f := job.Failure{Type: connect.TypeNetwork, Message: c.mask.Replace(reply.Cause(err))}
	switch {
	case ctx.Err() != nil: // the caller's time is nobody's failure
		return &connect.Result{Outcome: job.Released}
	case own.Err() != nil:
		f.Type, f.Message, f.Timeout = connect.TypeTimeout, fmt.Sprintf("no answer within %s", c.timeout), true
	case reply.IsTimeout(err):
		f.Type, f.Timeout = connect.TypeTimeout, true
	case errors.Is(err, errAnswer):
		f.Type = connect.TypeAnswer
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		f.Message += "; set tls.vhost to a name in the certificate, or tls.verify_hostname to off"
	} else if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		f.Message += "; set tls.ca_file to the certificate of the authority"
	}
	return &connect.Result{Outcome: job.Retried, Failure: f}
}

// refused is the result of an answer that is no success.
func (c *client) refused(outcome job.Outcome, resp *http.Response, text []byte) connect.Result {
	r := connect.Result{Outcome: outcome, Failure: reply.Refusal(resp, text, c.mask)}
	r.RetryAfter, r.NotBefore = reply.After(resp.Header.Get("Retry-After"))
	return r
}
