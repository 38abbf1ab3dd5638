package connect

import "net/netip"

// ranges of addresses, and what they are.
type ranges []struct {
	net netip.Prefix
	why string
}

func (r ranges) of(addr netip.Addr) (why string) {
	for _, x := range r {
		if x.net.Contains(addr) {
			return x.why
		}
	}
	return ""
}

// covers says what a range is that lies in one of these wholly.
func (r ranges) covers(p netip.Prefix) (why string) {
	for _, x := range r {
		if x.net.Bits() <= p.Bits() && x.net.Contains(p.Addr()) {
			return x.why
		}
	}
	return ""
}

// never are ranges that no target has: what a machine keeps for itself and
// tells to whoever asks from inside, such as its credentials in a cloud.
var never = ranges{
	{netip.MustParsePrefix("100.100.100.200/32"), "a metadata address"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a metadata address"},
	{netip.MustParsePrefix("192.0.0.192/32"), "a metadata address"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "a range of metadata addresses"},
	{netip.MustParsePrefix("fd20:ce::/32"), "a range of metadata addresses"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where metadata is"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("0.0.0.0/8"), "no address of one machine"},
	{netip.MustParsePrefix("::/128"), "no address of one machine"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
}

// within are ranges of the machine itself and of networks that are not public.
var within = ranges{
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fec0::/10"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "reserved"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
}

// Forbidden says what an address is that is never called, "" for another.
func Forbidden(addr netip.Addr) (why string) { return never.of(plain(addr)) }

// Inside reports whether an address belongs to this machine or to a network
// that is not public.
func Inside(addr netip.Addr) bool { return within.of(plain(addr)) != "" }

// Ranges of IPv6 addresses that hold an IPv4 one, which is reached in the end.
var (
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	sixTo = netip.MustParsePrefix("2002::/16")
)

// plain is the address that is reached in the end: an IPv4 address inside an
// IPv6 one is that address (mapped, NAT64 and 6to4).
func plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixTo.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}
