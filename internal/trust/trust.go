// Package trust keeps web pages away from servers on somebody's machine: a page that got
// its own name resolved to this address still says its name in Host, and one that calls us
// by ours says where it comes from in Origin or Sec-Fetch-Site (spec/operations.md,
// Security). Every listener that speaks HTTP asks it.
package trust

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Trusted reports whether a request is for this server and from no other site's page.
// allowed tells further names of this server, in lower case.
func Trusted(r *http.Request, allowed func(name string) bool) bool {
	if !knows(r.Host, r, allowed) {
		return false
	}
	// Another port or name of the same site is another's page, too.
	if site := r.Header["Sec-Fetch-Site"]; len(site) > 0 && (site[0] == "cross-site" || site[0] == "same-site") {
		return false
	}
	for _, origin := range r.Header["Origin"] {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.Host != r.Host && !allowed(strings.ToLower(u.Hostname())) {
			return false
		}
	}
	return true
}

// knows reports whether a Host header speaks of this server.
func knows(host string, r *http.Request, allowed func(name string) bool) bool {
	name := host
	if at := strings.LastIndexByte(host, ':'); at >= 0 && strings.IndexByte(host[at:], ']') < 0 {
		name = host[:at]
	}
	switch name {
	case "127.0.0.1", "localhost", "[::1]":
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if _, unix := local.(*net.UnixAddr); unix {
		return true // no browser gets there
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") || allowed(name) {
		return true
	}
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	tcp, ok := local.(*net.TCPAddr)
	return addr.IsLoopback() || ok && tcp.AddrPort().Addr().Unmap() == addr.Unmap()
}
