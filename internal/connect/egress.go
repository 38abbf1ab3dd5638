package connect

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/reprisehq/reprise/internal/job"
)

// Egress says which targets may be called (spec/operations.md, Security). A
// target is held against it by name when it is set, and by address at each
// dial: what a name means may have changed in between. The zero value allows
// nothing.
type Egress struct{ list []allowed }

// allowed is one line: a name, a pattern of names, or a range of addresses,
// each with a port or without.
type allowed struct {
	text   string
	host   string       // exactly, in lower case; "" = another kind
	suffix string       // of *.example.com: ".example.com"; of *: ""
	any    bool         // suffix is in force
	net    netip.Prefix // of an address, all its bits
	port   string       // "" = any
}

// EgressMax bounds the lines of an Egress.
const EgressMax = 1024

// ParseEgress reads lines of these forms, each with :PORT behind it or for all ports:
//
//	hooks.example.com      that name, wherever it leads
//	*.example.com          every name below, as far as it leads to public addresses
//	*                      every public address
//	10.1.2.3, [fd12::1]    that address
//	10.0.0.0/8             every address of the range; without a port
//
// Errors name the line. Ranges that are never called (Forbidden) are refused.
func ParseEgress(lines []string) (*Egress, error) {
	if len(lines) > EgressMax {
		return nil, bad("there may be at most %d lines", EgressMax)
	}
	e := &Egress{}
	for _, text := range lines {
		a, err := parseAllowed(text)
		if err != nil {
			return nil, err
		}
		e.list = append(e.list, a)
	}
	return e, nil
}

// Only allows the targets themselves and nothing else: what an operator wrote
// into the file may be called, wherever its name leads.
func Only(targets ...string) (*Egress, error) {
	e := &Egress{}
	for _, target := range targets {
		u, err := ParseTarget(target)
		if err != nil {
			return nil, err
		}
		a, err := parseAllowed(net.JoinHostPort(u.Hostname(), portOf(u)))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(e.list, a) {
			e.list = append(e.list, a)
		}
	}
	return e, nil
}

func parseAllowed(text string) (allowed, error) {
	const bytesMax = 300
	a := allowed{text: text}
	if len(text) > bytesMax {
		return a, bad("a line is longer than %d bytes", bytesMax)
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		if a.net = p.Masked(); p.Addr().Is4In6() || p.Addr() != a.net.Addr() {
			return a, bad("%q has bits set behind its length; write it as %s", text, a.net)
		}
		if why := never.covers(a.net); why != "" {
			return a, bad("%q is %s, which is never called", text, why)
		}
		return a, nil
	}
	meant := bad("%q is no name, address or range; write hooks.example.com, *.example.com, 10.1.2.3 or 10.0.0.0/8, with :PORT or without", text)
	if strings.Contains(text, "/") {
		return a, meant
	}
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return a, bad("%q: a port is between 1 and 65535", text)
		}
		host, a.port = h, port
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		if why := Forbidden(addr); why != "" {
			return a, bad("%q is %s, which is never called", text, why)
		}
		a.net = netip.PrefixFrom(addr, addr.BitLen())
		return a, nil
	}
	if rest, star := strings.CutPrefix(host, "*"); star {
		a.any, a.suffix = true, strings.ToLower(rest)
		if rest == "" || rest[0] == '.' && isName(a.suffix[1:]) {
			return a, nil
		}
	} else if host = fold(host); isName(host) {
		a.host = host
		return a, nil
	}
	return a, meant
}

// ParseTarget reads a web address that may be a target. It says nothing of
// whether it may be called.
func ParseTarget(target string) (*url.URL, error) {
	const bytesMax = 2 << 10
	if len(target) > bytesMax {
		return nil, bad("the target is longer than %d bytes", bytesMax)
	}
	u, err := url.Parse(target)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, bad("%q is no web address; write it as http://host/path", target)
	case u.User != nil:
		return nil, bad("a target has no user and password in it; give a header Authorization")
	case u.Fragment != "":
		return nil, bad("%q: a target has no #fragment", target)
	}
	if _, err := netip.ParseAddr(u.Hostname()); err != nil && !isName(fold(u.Hostname())) {
		return nil, bad("%q: %q is no name of a host", target, u.Hostname())
	}
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, bad("%q: a port is between 1 and 65535", target)
		}
	}
	return u, nil
}

// Check refuses a target that must not be called, as far as its text tells.
// Its errors are of kind Invalid.
func (e *Egress) Check(target string) error {
	u, err := ParseTarget(target)
	if err != nil {
		return err
	}
	host := u.Hostname()
	if to, err := netip.ParseAddrPort(net.JoinHostPort(host, portOf(u))); err == nil {
		return e.reaches(host, to)
	}
	if !e.names(fold(host), portOf(u)) {
		return e.refusal(net.JoinHostPort(host, portOf(u)))
	}
	return nil
}

// Lines are what is allowed, as it was given.
func (e *Egress) Lines() (list []string) {
	for _, a := range e.list {
		list = append(list, a.text)
	}
	return list
}

// Dial connects to HOST:PORT, if the rules allow the name and the address that
// it leads to now.
func (e *Egress) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return refused("%q is no address", address)
		}
		return e.reaches(host, to)
	}}
	return d.DialContext(ctx, network, addr)
}

// reaches decides about an address to which a host leads.
func (e *Egress) reaches(host string, to netip.AddrPort) error {
	addr, port := to.Addr().Unmap().WithZone(""), strconv.Itoa(int(to.Port()))
	if why := Forbidden(addr); why != "" {
		return refused("%s is %s, which is never called", addr, why)
	}
	_, err := netip.ParseAddr(host)
	byName, host := err != nil, fold(host)
	pattern, within := false, false
	for _, a := range e.list {
		switch {
		case a.port != "" && a.port != port:
		case a.net.IsValid():
			within = within || a.net.Contains(addr)
		case a.any:
			pattern = pattern || a.suffix == "" || byName && strings.HasSuffix(host, a.suffix)
		case a.host == host:
			return nil
		}
	}
	switch {
	case within && (pattern || !byName), pattern && !Inside(addr):
		return nil
	case pattern:
		return refused("%s leads to %s, which is no public address: allow the name itself, or that address too, in egress.allow", host, addr)
	}
	return e.refusal(net.JoinHostPort(host, port))
}

// names reports whether a line allows a name, as far as its text tells.
func (e *Egress) names(host, port string) bool {
	return slices.ContainsFunc(e.list, func(a allowed) bool {
		return (a.port == "" || a.port == port) && (a.host != "" && a.host == host || a.any && strings.HasSuffix(host, a.suffix))
	})
}

func (e *Egress) refusal(what string) error {
	const most = 8
	list := e.Lines()
	if len(list) == 0 {
		return refused("%s must not be called: egress.allow allows nothing", what)
	}
	text := strings.Join(list[:min(most, len(list))], ", ")
	if more := len(list) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return refused("%s must not be called: egress.allow has only %s", what, text)
}

// Refused is why the rules of egress forbid a target. It is also what a dial
// fails with. Its cause has the kind Invalid.
type Refused struct{ Why *job.Error }

func (r *Refused) Error() string { return r.Why.Error() }

func (r *Refused) Unwrap() error { return r.Why }

func refused(format string, args ...any) error { return &Refused{bad(format, args...)} }

func bad(format string, args ...any) *job.Error { return job.Errorf(job.Invalid, format, args...) }

// fold is how names are compared.
func fold(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// isName reports whether a folded text is a name of a host.
func isName(s string) bool {
	const bytesMax = 253
	if s == "" || len(s) > bytesMax {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return false
		}
	}
	return true
}

// portOf is the port of a target, given or that of its scheme.
func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}
