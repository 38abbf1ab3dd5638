package fluent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/connect/listen"
	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/plugin"
)

// listeners are the inputs that others connect to.
var listeners = map[string]func(l *loader, v *plugin.Values, tag string) (connect.Source, error){
	"http": func(l *loader, v *plugin.Values, tag string) (connect.Source, error) {
		a, err := l.address(v, false)
		if err != nil {
			return nil, err
		}
		code, _ := strconv.Atoi(v.Text("successful_response_code")) // one of three words
		o := listen.HTTPOptions{
			Address: a, Tag: tag, TagKey: v.Text("tag_key"), SuccessfulResponseCode: code,
			AddRemoteAddr: v.Flag("add_remote_addr"), RemoteAddrKey: v.Text("remote_addr_key"),
			EnableHealthEndpoint: v.Flag("enable_health_endpoint"), BufferMaxSize: int(v.Size("buffer_max_size")),
			MaxConnections: int(v.Int("http_server.max_connections")), IdleTimeout: v.Span("http_server.idle_timeout"),
			AllowHosts: l.AllowHosts,
		}
		for _, s := range v.All("success_header") {
			o.SuccessHeader = append(o.SuccessHeader, s.Value)
		}
		return sourceOf(listen.NewHTTP(o))
	},
	"tcp": func(l *loader, v *plugin.Values, tag string) (connect.Source, error) {
		a, err := l.address(v, false)
		if err != nil {
			return nil, err
		}
		return sourceOf(listen.NewTCP(listen.TCPOptions{
			Address: a, Tag: tag, Format: v.Text("format"), Separator: v.Text("separator"),
			ChunkSize: int(v.Int("chunk_size")), BufferSize: int(v.Int("buffer_size")),
			SourceAddressKey: v.Text("source_address_key"), Lines: l.linesOf(v, "log"),
		}))
	},
	"syslog": func(l *loader, v *plugin.Values, tag string) (connect.Source, error) {
		mode := v.Text("mode")
		a := listen.Address{Now: l.Now, Log: l.Log}
		standard := "syslog-rfc3164-local"
		if mode == "udp" || mode == "tcp" {
			var err error
			a, err = l.address(v, false)
			if errors.Is(err, errExposed) && mode == "udp" {
				err = errDatagrams
			}
			if err != nil {
				return nil, err
			}
			standard = "syslog-rfc5424"
		}
		lines := l.linesOf(v, "log")
		if lines == nil {
			p, err := l.parsers.Parser(standard)
			if err != nil {
				return nil, err
			}
			lines = func() connect.Lines { return parser.NewLines("log", p) }
		}
		perm, err := permOf(v)
		if err != nil {
			return nil, err
		}
		return sourceOf(listen.NewSyslog(listen.SyslogOptions{
			Address: a, Tag: tag, Mode: mode, Path: v.Text("path"), UnixPerm: perm, Format: v.Text("format"),
			BufferChunkSize: int(v.Size("buffer_chunk_size")), BufferMaxSize: int(v.Size("buffer_max_size")),
			ReceiveBufferSize: int(v.Size("receive_buffer_size")), SourceAddressKey: v.Text("source_address_key"), Lines: lines,
		}))
	},
	"forward": func(l *loader, v *plugin.Values, tag string) (connect.Source, error) {
		a := listen.Address{Now: l.Now, Log: l.Log}
		if v.Text("unix_path") == "" {
			var err error
			if a, err = l.address(v, v.Text("shared_key") != ""); err != nil {
				return nil, err
			}
		}
		if !v.Has("tag") {
			tag = "" // that of the records
		}
		perm, err := permOf(v)
		if err != nil {
			return nil, err
		}
		o := listen.ForwardOptions{
			Address: a, Tag: tag, TagPrefix: v.Text("tag_prefix"), SharedKey: v.Text("shared_key"), EmptySharedKey: v.Flag("empty_shared_key"),
			SelfHostname: v.Text("self_hostname"), UnixPath: v.Text("unix_path"), UnixPerm: perm, BufferMaxSize: int(v.Size("buffer_max_size")),
		}
		for _, s := range v.All("security.users") {
			o.Users = append(o.Users, s.Value)
		}
		return sourceOf(listen.NewForward(o))
	},
}

func permOf(v *plugin.Values) (fs.FileMode, error) {
	text := v.Text("unix_perm")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 8, 9)
	if err != nil {
		return 0, fmt.Errorf("unix_perm: %s is no permission; write four octal digits, such as 0644", strconv.Quote(text))
	}
	return fs.FileMode(n), nil
}

// errExposed refuses what others could reach (operations.md, Security).
var errExposed = errors.New("listen: other machines reach this address, so TLS is needed, and proof of who sends: " +
	"set tls on with tls.crt_file and tls.key_file, and tls.verify on with tls.ca_file (or shared_key at forward). " +
	orLocal)

// errDatagrams is the same for UDP, which has no TLS.
var errDatagrams = errors.New("listen: other machines reach this address, and by UDP anybody can send what he likes. " +
	"Use Mode tcp with tls on, tls.verify on and their files. " + orLocal)

const orLocal = "Or write Listen 127.0.0.1. Or set REPRISE_INSECURE=true in the environment, if nobody else reaches that network"

// address is where an input listens: at this machine, unless the section says otherwise.
// known: senders prove that they know a secret.
func (l *loader) address(v *plugin.Values, known bool) (listen.Address, error) {
	a := listen.Address{Listen: v.Text("listen"), Port: int(v.Int("port")), Now: l.Now, Log: l.Log}
	if !v.Has("listen") {
		a.Listen = "127.0.0.1"
		l.Notice(v.At, "input %s listens at 127.0.0.1 only; write Listen with an address to take records of other machines", v.Plugin.Name)
	}
	if !v.Flag("tls") {
		if !onlyHere(a.Listen) && !l.Insecure {
			return a, errExposed
		}
		return a, nil
	}
	config, err := serverTLS(v)
	a.TLS = config
	if err == nil && !onlyHere(a.Listen) && !known && !v.Flag("tls.verify") && !l.Insecure {
		err = errExposed
	}
	return a, err
}

// onlyHere reports whether only this machine reaches an address.
func onlyHere(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// serverTLS is the certificate of an input, and whom it asks for theirs.
func serverTLS(v *plugin.Values) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(v.Text("tls.crt_file"), v.Text("tls.key_file"))
	if err != nil {
		return nil, fmt.Errorf("tls.crt_file, tls.key_file: %w", err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if !v.Flag("tls.verify") {
		return c, nil
	}
	text, err := os.ReadFile(v.Text("tls.ca_file"))
	if err != nil {
		return nil, fmt.Errorf("tls.ca_file: %w; tls.verify needs the authority of the clients' certificates", err)
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("tls.ca_file: has no certificate in PEM")
	}
	return c, nil
}
