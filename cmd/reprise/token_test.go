package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/wire"
)

func TestTheTokenComesFromTheStrongestPlace(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file, other := write("a", "from-file\n"), write("b", "from-env-file")
	for _, c := range []struct {
		name, env, envFile string
		args               []string
		want               string
	}{
		{"nobody says anything", "", "", nil, ""},
		{"a file of the environment", "", other, nil, "from-env-file"},
		{"the environment", "from-env", other, nil, "from-env"},
		{"a file", "from-env", other, []string{"--token-file", file}, "from-file"},
		{"a flag", "from-env", other, []string{"--token", "from-flag"}, "from-flag"},
	} {
		t.Setenv("REPRISE_TOKEN", c.env)
		t.Setenv("REPRISE_TOKEN_FILE", c.envFile)
		var conn connection
		cmd := &cobra.Command{Run: func(*cobra.Command, []string) {}}
		conn.register(cmd)
		cmd.SetArgs(c.args)
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if got, err := conn.token(); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
		conn.secretFile = ""
		t.Setenv("REPRISE_TOKEN_FILE", "")
		if got, err := conn.token(); got != c.want || err != nil {
			t.Errorf("%s, for a second client: got %q, %v", c.name, got, err)
		}
	}
	for _, conn := range []*connection{
		{secret: "a", secretFile: file}, {secretFile: filepath.Join(dir, "none")}, {secret: "hunter2\nhunter2"}, {secretFile: write("c", "hunter2 hunter2")},
	} {
		if got, err := conn.token(); err == nil || got != "" || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("--token %q, --token-file %q: got %q, %v", conn.secret, conn.secretFile, got, err)
		}
	}
}

// What help shows must not hold the token of the environment.
func TestHelpDoesNotShowTheToken(t *testing.T) {
	t.Setenv("REPRISE_TOKEN", "hunter2")
	for _, args := range [][]string{{"jobs", "list", "--help"}, {"work", "--help"}, {"bench", "--help"}, {"token", "create", "--help"}} {
		if out := well(t, args...); strings.Contains(out, "hunter2") || !strings.Contains(out, "--token-file") {
			t.Errorf("%s: %s", args, out)
		}
	}
}

func TestWhenATokenEndsIsASpanOrATime(t *testing.T) {
	for text, want := range map[string]wire.NewToken{
		"":                     {},
		"12h":                  {ExpiresIn: 12 * 3600_000},
		"90d":                  {ExpiresIn: 90 * 24 * 3600_000},
		"1d12h":                {ExpiresIn: 36 * 3600_000},
		"2030-01-02T03:04:05Z": {ExpiresAt: 1893553445000},
		"2020-01-02T03:04:05Z": {ExpiresAt: 1577934245000}, // the server says that it is over
	} {
		var got wire.NewToken
		if err := until(&got, text); err != nil || got.ExpiresAt != want.ExpiresAt || got.ExpiresIn != want.ExpiresIn {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"soon", "-1h", "1", "90 d"} {
		if err := until(new(wire.NewToken), bad); err == nil || !strings.Contains(err.Error(), "--expires") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAGeneratedTokenIsANewOne(t *testing.T) {
	a, b := well(t, "token", "generate"), well(t, "token", "generate")
	if a == b || len(strings.TrimSpace(a)) != 66 || !strings.HasPrefix(a, "rp_") {
		t.Errorf("got %q, %q", a, b)
	}
}
