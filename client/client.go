package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options of a Client. The zero value is ready to use.
type Options struct {
	// Timeout bounds one request and its answer. 0 = 30 s. The stream of a
	// worker is not bounded by it.
	Timeout time.Duration

	// RetryFor is how long an enqueue with an idempotency key is repeated while
	// the server cannot be reached or says "later". 0 = 15 s, negative = never.
	RetryFor time.Duration

	// Repeating, if set, is told before a call is repeated for the first time: why,
	// and for how long it will be tried at most. It must not block.
	Repeating func(why error, left time.Duration)

	// TLS is for https addresses: own authorities, client certificates.
	TLS *tls.Config

	// Token is sent with every request, as a bearer of Authorization. It says
	// who asks, and what may be done (reprise token create). "" = none.
	Token string

	// Header is sent with every request, for example what a proxy asks for.
	Header http.Header

	// UserAgent names the program to the server. "" = "reprise-go".
	UserAgent string

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // sockets, and tests
}

// Client talks to one server. It may be used by many goroutines at once.
type Client struct {
	base  string // without a slash at the end
	shown string // the address, without a password
	opts  Options
	calls *http.Client
	takes *http.Client // long streams, over HTTP/1.1 connections of their own
}

// bodyBytesMax bounds what is read of one answer.
const bodyBytesMax = 256 << 20

// New makes a client of the server at an address such as
// http://127.0.0.1:7890, or unix:///run/reprise.sock for a socket of the file
// system. It does not connect yet.
func New(baseURL string, opts Options) (*Client, error) {
	u, err := url.Parse(baseURL)
	shown := hidePassword(baseURL, u)
	if err == nil && u.Scheme == "unix" {
		if u, err = overSocket(u, &opts); err != nil {
			return nil, err
		}
	}
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no server address; write it as http://127.0.0.1:7890", shown)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is no server address: it must end before the %q", shown, "?")
	}
	opts.Timeout = cmp.Or(opts.Timeout, 30*time.Second)
	opts.RetryFor = cmp.Or(opts.RetryFor, 15*time.Second)
	opts.UserAgent = cmp.Or(opts.UserAgent, "reprise-go")
	return &Client{
		base:  strings.TrimRight(u.String(), "/"),
		shown: strings.TrimRight(shown, "/"),
		opts:  opts,
		calls: &http.Client{Transport: transport(opts), CheckRedirect: sameAnswer},
		takes: &http.Client{Transport: transport(opts), CheckRedirect: sameAnswer},
	}, nil
}

// hidePassword is an address as messages may show it; u is nil if it is none.
func hidePassword(address string, u *url.URL) string {
	if u != nil {
		return u.Redacted()
	}
	return address[strings.LastIndexByte(address, '@')+1:]
}

// overSocket makes an address of HTTP, and connections that go to the socket.
func overSocket(u *url.URL, opts *Options) (*url.URL, error) {
	path := u.Path
	if u.Host != "" || path == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is no server address; write it as unix:///run/reprise.sock, with the whole path", u.Redacted())
	}
	opts.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := net.Dialer{Timeout: 10 * time.Second}
		return d.DialContext(ctx, "unix", path)
	}
	return &url.URL{Scheme: "http", Host: "localhost"}, nil
}

// sameAnswer keeps redirects from being followed: a POST would turn into a GET.
func sameAnswer(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// transport speaks HTTP/1.1: a stream that nobody reads for a while must not
// fill the window of a connection that other calls share.
func transport(opts Options) *http.Transport {
	t := &http.Transport{
		Proxy:               opts.proxy(),
		DialContext:         opts.dial,
		TLSClientConfig:     opts.TLS.Clone(), // a transport writes into it
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
		Protocols:           new(http.Protocols),
	}
	if t.DialContext == nil {
		dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
		t.DialContext = dialer.DialContext
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// proxy is what the environment asks for; a socket has none.
func (o *Options) proxy() func(*http.Request) (*url.URL, error) {
	if o.dial != nil {
		return nil
	}
	return http.ProxyFromEnvironment
}

// URL is the address of the server, without a password.
func (c *Client) URL() string { return c.shown }

// Close lets idle connections go. The client stays usable.
func (c *Client) Close() {
	c.calls.CloseIdleConnections()
	c.takes.CloseIdleConnections()
}

// call sends body as JSON, unless it is nil, and reads the answer into into,
// unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = encode(body); err != nil {
			return err
		}
	}
	return c.send(ctx, method, path, raw, into)
}

// ask is call, with what was done, doing and its args, before an error.
func (c *Client) ask(ctx context.Context, method, path string, body, into any, doing string, args ...any) error {
	if err := c.call(ctx, method, path, body, into); err != nil {
		return fmt.Errorf("%s: %w", fmt.Sprintf(doing, args...), err)
	}
	return nil
}

// answer is ask for what an answer is read into whole.
func answer[T any](ctx context.Context, c *Client, method, path string, body any, doing string, args ...any) (*T, error) {
	x := new(T)
	if err := c.ask(ctx, method, path, body, x, doing, args...); err != nil {
		return nil, err
	}
	return x, nil
}

// repeated is answer for a call that is repeated, where that is safe.
func repeated[T any](ctx context.Context, c *Client, safe bool, method, path string, body any, doing string, args ...any) (x *T, err error) {
	raw := []byte(nil)
	if body != nil {
		raw, err = encode(body)
	}
	if err == nil {
		err = c.repeat(ctx, safe, func() error {
			x = new(T)
			return c.send(ctx, method, path, raw, x)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fmt.Sprintf(doing, args...), err)
	}
	return x, nil
}

func (c *Client) send(ctx context.Context, method, path string, raw []byte, into any) error {
	return c.sendWithin(ctx, c.opts.Timeout, method, path, raw, into)
}

func (c *Client) sendWithin(ctx context.Context, timeout time.Duration, method, path string, raw []byte, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, &NoAnswerError{URL: c.shown, Why: "nothing came within " + timeout.String()})
	defer cancel()
	req, err := c.request(ctx, method, path, raw)
	if err != nil {
		return err
	}
	resp, err := c.calls.Do(req)
	if err != nil {
		return c.because(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= 300 {
		return errorOf(resp)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, bodyBytesMax))
	if err != nil {
		return c.because(ctx, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("reading the answer: %w; is %s a Reprise server?", err, c.base)
	}
	return nil
}

// because is why a call has no answer: what ended its ctx, if that is told, or what
// became of the connection.
func (c *Client) because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ctx.Err()) {
		return cause
	}
	return &NoAnswerError{URL: c.shown, Why: whyNoAnswer(err), cause: err}
}

func (c *Client) request(ctx context.Context, method, path string, raw []byte) (*http.Request, error) {
	var body io.Reader // a nil *bytes.Reader would not be nil
	if raw != nil {
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	for name, values := range c.opts.Header {
		req.Header[name] = values
	}
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	req.Header.Set("Accept", "application/json")
	if raw != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Prefer", "handling=strict") // what a server does not know is told, not lost
	}
	return req, nil
}

// encode writes JSON and leaves <, > and & as they are: a payload should
// arrive as it was given.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
