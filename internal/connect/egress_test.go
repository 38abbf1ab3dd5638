package connect

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func parse(t *testing.T, lines ...string) *Egress {
	t.Helper()
	e, err := ParseEgress(lines)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEveryLineOfTheRulesAllowsWhatItSays(t *testing.T) {
	for _, c := range []struct {
		line, host, leadsTo string
		refused             string // "" = allowed
	}{
		{"hooks.example.com", "hooks.example.com", "93.184.216.34:443", ""},
		{"hooks.example.com", "HOOKS.Example.com.", "93.184.216.34:443", ""},
		{"hooks.example.com", "hooks.example.com", "10.1.2.3:80", ""}, // its own name: wherever it leads
		{"hooks.example.com", "a.hooks.example.com", "93.184.216.34:443", "must not be called"},
		{"hooks.example.com", "evil-hooks.example.com", "93.184.216.34:443", "must not be called"},
		{"hooks.example.com:443", "hooks.example.com", "93.184.216.34:443", ""},
		{"hooks.example.com:443", "hooks.example.com", "93.184.216.34:80", "must not be called"},
		{"*.example.com", "a.b.example.com", "93.184.216.34:1", ""},
		{"*.example.com", "example.com", "93.184.216.34:1", "must not be called"},
		{"*.example.com", "badexample.com", "93.184.216.34:1", "must not be called"},
		{"*.example.com", "a.example.com", "127.0.0.1:7890", "no public address"}, // rebound
		{"*.example.com", "a.example.com", "10.0.0.9:80", "no public address"},
		{"*.example.com", "a.example.com", "100.64.1.1:80", "no public address"},
		{"*.example.com", "a.example.com", "[fd12::1]:80", "no public address"},
		{"*.example.com", "a.example.com", "[::ffff:127.0.0.1]:80", "no public address"},
		{"*.example.com", "a.example.com", "[64:ff9b::7f00:1]:80", "no public address"}, // NAT64 of 127.0.0.1
		{"*.example.com 10.0.0.0/8", "a.example.com", "10.0.0.9:80", ""},
		{"*.example.com 10.0.0.0/8", "other.org", "10.0.0.9:80", "must not be called"},
		{"*.example.com 10.0.0.0/8", "10.0.0.9", "10.0.0.9:80", ""},
		{"*", "anything.org", "93.184.216.34:80", ""},
		{"*", "93.184.216.34", "93.184.216.34:80", ""},
		{"*", "anything.org", "192.168.0.1:80", "no public address"},
		{"*", "127.0.0.1", "127.0.0.1:80", "no public address"},
		{"*:443", "anything.org", "93.184.216.34:80", "must not be called"},
		{"127.0.0.1", "127.0.0.1", "127.0.0.1:9000", ""},
		{"127.0.0.1", "::ffff:127.0.0.1", "127.0.0.1:9000", ""},
		{"127.0.0.1:9000", "127.0.0.1", "127.0.0.1:9001", "must not be called"},
		{"[fd12::1]:80", "fd12::1", "[fd12::1]:80", ""},
		{"10.0.0.0/8", "11.0.0.1", "11.0.0.1:80", "must not be called"},
		{"10.0.0.0/8", "name.org", "10.0.0.1:80", "must not be called"}, // an address allows no name
		{"", "hooks.example.com", "93.184.216.34:443", "allows nothing"},

		// Never, whoever allows it.
		{"0.0.0.0/0", "169.254.169.254", "169.254.169.254:80", "link-local"},
		{"metadata.google.internal", "metadata.google.internal", "169.254.169.254:80", "link-local"},
		{"hooks.example.com", "hooks.example.com", "[fe80::1%eth0]:80", "link-local"},
		{"hooks.example.com", "hooks.example.com", "[fd00:ec2::254]:80", "metadata"},
		{"hooks.example.com", "hooks.example.com", "100.100.100.200:80", "metadata"},
		{"hooks.example.com", "hooks.example.com", "[::ffff:169.254.169.254]:80", "link-local"},
		{"hooks.example.com", "hooks.example.com", "[64:ff9b::a9fe:a9fe]:80", "link-local"},
		{"hooks.example.com", "hooks.example.com", "[2002:a9fe:a9fe::1]:80", "link-local"},
		{"hooks.example.com", "hooks.example.com", "0.0.0.0:80", "no address"},
		{"hooks.example.com", "hooks.example.com", "[::]:80", "no address"},
		{"hooks.example.com", "hooks.example.com", "239.1.1.1:80", "multicast"},
		{"hooks.example.com", "hooks.example.com", "255.255.255.255:80", "broadcast"},
	} {
		e := parse(t, strings.Fields(c.line)...)
		err := e.reaches(c.host, netip.MustParseAddrPort(c.leadsTo))
		if got := errText(err); (c.refused == "") != (err == nil) || !strings.Contains(got, c.refused) {
			t.Errorf("%q, %s leading to %s: %v, want %q", c.line, c.host, c.leadsTo, err, c.refused)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestATargetIsHeldAgainstTheRulesWhenItIsSet(t *testing.T) {
	e := parse(t, "hooks.example.com:443", "*.partner.org", "10.0.0.0/8", "127.0.0.1:9000")
	for target, want := range map[string]string{
		"https://hooks.example.com/in?x=1":       "",
		"http://hooks.example.com/in":            "must not be called", // port 80
		"https://a.partner.org:8443/":            "",
		"http://10.9.8.7/x":                      "",
		"http://127.0.0.1:9000/":                 "",
		"http://127.0.0.1:7890/jobs":             "must not be called",
		"http://[::ffff:169.254.169.254]/latest": "link-local",
		"http://169.254.169.254/latest":          "link-local",
		"http://0x7f000001/":                     "must not be called",
		"http://2130706433:9000/":                "must not be called",
		"ftp://hooks.example.com/":               "no web address",
		"//hooks.example.com/":                   "no web address",
		"hooks.example.com":                      "no web address",
		"":                                       "no web address",
		"https://user:pw@hooks.example.com/":     "no user and password",
		"https://hooks.example.com/#x":           "no #fragment",
		"https://hooks.example.com:0/":           "a port is",
		"https://hooks.example.com:99999/":       "a port is",
		"https://hooks.example.com\x00/":         "no web address",
		"https://hooks example.com/":             "no web address",
		"https://höoks.example.com/":             "no name of a host",
		"https://" + strings.Repeat("a", 3000):   "longer than",
	} {
		err := e.Check(target)
		if (want == "") != (err == nil) || !strings.Contains(errText(err), want) {
			t.Errorf("%q: %v, want %q", target, err, want)
		}
		if err != nil && job.KindOf(err) != job.Invalid {
			t.Errorf("%q: kind %d", target, job.KindOf(err))
		}
	}
}

func TestALineThatCannotBeMeantIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"":                      "no name",
		"http://example.com":    "no name",
		"example.com/path":      "no name",
		"*example.com":          "no name",
		"a.*.com":               "no name",
		"*.":                    "no name",
		"example.com:http":      "a port is",
		"example.com:0":         "a port is",
		"10.1.2.3/8":            "write it as 10.0.0.0/8",
		"169.254.0.0/16":        "link-local",
		"169.254.169.254":       "link-local",
		"fe80::/64":             "link-local",
		"100.100.100.200":       "metadata",
		"224.1.0.0/16":          "multicast",
		"exa mple.com":          "no name",
		"example.com\x00":       "no name",
		strings.Repeat("a", 64): "no name",
	} {
		if _, err := ParseEgress([]string{"good.example.com", line}); !strings.Contains(errText(err), want) || err == nil {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	if _, err := ParseEgress(make([]string, EgressMax+1)); err == nil {
		t.Error("too many lines are taken")
	}
}

func TestEachDialLooksAtTheAddressThatTheNameHasNow(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	dial := func(e *Egress, host string) error {
		conn, err := e.Dial(t.Context(), "tcp4", net.JoinHostPort(host, port))
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	for _, line := range []string{"localhost", "localhost:" + port} {
		if err := dial(parse(t, line), "localhost"); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	// The pattern allows the name, and the name leads inside: what a name that
	// is rebound after it was checked looks like.
	for _, line := range []string{"*", "*:" + port, "*.example.com", "localhost:1", "10.0.0.0/8"} {
		err := dial(parse(t, line), "localhost")
		if _, ok := errors.AsType[*Refused](err); !ok {
			t.Errorf("%s: %v, want a refusal", line, err)
		}
	}
	only, err := Only("http://127.0.0.1:"+port+"/x", "http://127.0.0.1:"+port+"/y", "https://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	if err := dial(only, "127.0.0.1"); err != nil {
		t.Error(err)
	}
	if got, want := strings.Join(only.Lines(), " "), "127.0.0.1:"+port+" example.com:443"; got != want {
		t.Errorf("targets of a file allow %q, want %q", got, want)
	}
	if err := dial(only, "localhost"); err == nil {
		t.Error("another name of an allowed address is called")
	}
}
