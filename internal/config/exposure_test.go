package config

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestAServerThatOthersReachSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name    string
		edit    func(c *Config)
		tokens  bool
		missing string // "" = nothing
	}{
		{"loopback", func(*Config) {}, false, ""},
		{"localhost", func(c *Config) { c.Host = "localhost" }, false, ""},
		{"version 6", func(c *Config) { c.Host = "::1" }, false, ""},
		{"beyond", func(c *Config) { c.Host = "0.0.0.0" }, false, "no TLS and no token"},
		{"a name", func(c *Config) { c.Host = "queue.example" }, true, "no TLS"},
		{"beyond with TLS", func(c *Config) { c.Host, c.TLSCert = "::", "c" }, false, "no token"},
		{"beyond with TLS and tokens", func(c *Config) { c.Host, c.TLSCert = "::", "c" }, true, ""},
		{"with certificates of clients", func(c *Config) { c.Host, c.TLSCert, c.TLSClientCA = "::", "c", "ca" }, false, ""},
		{"authorities without TLS", func(c *Config) { c.Host, c.TLSClientCA = "::", "ca" }, false, "no TLS and no token"},
		{"behind a proxy", func(c *Config) { c.Host, c.BehindTLSProxy = "10.0.0.1", true }, true, ""},
		{"behind a proxy without tokens", func(c *Config) { c.Host, c.BehindTLSProxy = "10.0.0.1", true }, false, "no token"},
		{"behind a proxy on loopback", func(c *Config) { c.BehindTLSProxy = true }, false, "no token"},
		{"behind a proxy on a unix socket", func(c *Config) { c.TCP, c.Unix, c.BehindTLSProxy = false, "/s", true }, false, "no token"},
		{"a unix socket only", func(c *Config) { c.Host, c.TCP, c.Unix = "0.0.0.0", false, "/s" }, false, ""},
	} {
		cfg := Default()
		c.edit(&cfg)
		err := cfg.Exposed(c.tokens)
		if c.missing == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.missing != "" && (err == nil || !strings.Contains(err.Error(), "there is "+c.missing+": ")) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.missing)
		}
	}
}

const aSecret = "rp_0123456789_0123456789abcdefghijklmnopqrstuv0123456789abcdefghij"

func TestTokensOfTheFile(t *testing.T) {
	const file = `
auth:
  tokens:
    ci:
      secret: ${env:CI}
      scopes: [enqueue, read]
      queues: ["mail-*", bills]
    root: {secret: "` + aSecret + `", scopes: admin}
`
	other := strings.Replace(aSecret, "9_", "a_", 1)
	cfg, report, err := load(t, nil, []string{"CI=" + other}, file)
	if err != nil {
		t.Fatal(err)
	}
	id, hash, _ := job.ParseSecret(other)
	if len(cfg.Tokens) != 2 || cfg.Tokens[0].Name != "ci" || cfg.Tokens[0].ID != id || cfg.Tokens[0].Hash != hash ||
		cfg.Tokens[0].Scopes != job.ScopeEnqueue|job.ScopeRead || !cfg.Tokens[0].Reaches("mail-1") || cfg.Tokens[0].Reaches("x") || !cfg.HasAdmin() {
		t.Errorf("got %+v", cfg.Tokens)
	}
	if v := report.of("auth.tokens.ci.scopes"); v.Value != "enqueue,read" {
		t.Errorf("the scopes are reported as %+v", v)
	}
	if len(report.Notices) != 1 || !strings.Contains(report.Notices[0].Text, "auth.tokens.root.secret is written into the file") {
		t.Errorf("notices %v", report.Notices)
	}
	var shown strings.Builder
	if err := report.WriteTable(&shown); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{aSecret[14:], other[14:]} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("a secret is shown:\n%s", &shown)
		}
	}
	if v := report.of("auth.tokens.root.secret"); v.Value != masked {
		t.Errorf("the secret is reported as %+v", v)
	}
}

func TestRefusedTokensOfTheFileAreNotShown(t *testing.T) {
	for _, c := range []struct{ file, says string }{
		{"ci: {scopes: read}", "auth.tokens.ci: secret is missing"},
		{"ci: {secret: hunter2hunter2, scopes: read}", "auth.tokens.ci.secret: is no token"},
		{"ci: {secret: '${env:CI}', scopes: read}", "auth.tokens.ci.secret: is no token"},
		{"ci: {secret: '${env:NONE}', scopes: read}", "the environment has no such variable"},
		{"ci: {secret: " + aSecret + "}", "auth.tokens.ci: name at least one scope"},
		{"ci: {secret: " + aSecret + ", scopes: [write]}", `there is no scope "write"`},
		{"ci: {secret: " + aSecret + ", scopes: {a: b}}", "auth.tokens.ci.scopes: must be a list"},
		{"ci: {secret: " + aSecret + ", scopes: [[read]]}", "each entry must be a single value"},
		{"ci: {secret: " + aSecret + ", scopes: read, queues: 'a?'}", "is no pattern of queues"},
		{"ci: {secret: " + aSecret + ", scopes: read, expires: 3}", "unknown key"},
		{"ci: " + aSecret, "must have keys"},
		{"'a b': {secret: " + aSecret + ", scopes: read}", "name must be at most"},
		{"a: {secret: " + aSecret + ", scopes: read}, b: {secret: " + aSecret + ", scopes: read}", "auth.tokens.b: has the same secret as auth.tokens.a"},
	} {
		_, _, err := load(t, nil, []string{"CI=hunter2hunter2"}, "auth: {tokens: {"+c.file+"}}\n")
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s\n got %v\nwant %s", c.file, err, c.says)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), aSecret[14:])) {
			t.Errorf("%s\nthe refusal tells the secret: %v", c.file, err)
		}
	}
}
