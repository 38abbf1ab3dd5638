package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// words are those of a line that begins with a keyword, in a file of deploy.
func words(t *testing.T, file, keyword string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.ReplaceAll(string(text), "\\\n", " ")
	for line := range strings.Lines(whole) {
		if rest, ok := strings.CutPrefix(line, keyword); ok {
			return strings.Fields(rest)
		}
	}
	t.Fatalf("%s has no %q", file, keyword)
	return nil
}

// argv is a command in the JSON form of a Dockerfile.
func argv(t *testing.T, list []string) (args []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(strings.Join(list, " ")), &args); err != nil {
		t.Fatalf("%q: %v", list, err)
	}
	return args
}

// What the image and the systemd unit say to the binary is what it knows, and
// the image is built by the Go that go.mod wants. Building it needs a registry.
func TestTheImageAndTheUnitFitTheBinary(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	wants := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))
	if from := words(t, "Dockerfile", "FROM golang:"); wants == nil || from[0] != wants[1] {
		t.Errorf("the image is built by Go %s, go.mod has %q", from[0], wants)
	}

	dir := t.TempDir()
	var flags []string // each variable is one, too
	for _, v := range words(t, "Dockerfile", "ENV ") {
		name, value, _ := strings.Cut(strings.TrimPrefix(v, "REPRISE_"), "=")
		if name != "ROOT_DIR" {
			flags = append(flags, "--"+strings.ToLower(strings.ReplaceAll(name, "_", "-")), value)
		}
	}
	if entry := argv(t, words(t, "Dockerfile", "ENTRYPOINT ")); len(entry) != 1 || entry[0] != "/reprise" {
		t.Errorf("the image starts %q", entry)
	}
	cmd := argv(t, words(t, "Dockerfile", "CMD "))
	if cmd[0] != "serve" {
		t.Fatalf("the image runs %q", cmd)
	}
	s := start(t, filepath.Join(dir, "root"), append(flags, cmd[1:]...)...)
	if !strings.HasPrefix(s.addr, "[::]:") && !strings.HasPrefix(s.addr, "0.0.0.0:") {
		t.Errorf("it listens on %s, where nobody outside the container gets", s.addr)
	}
	health := words(t, "Dockerfile", "HEALTHCHECK ")
	for health[0] != "CMD" {
		health = health[1:]
	}
	check := argv(t, health[1:])
	succeeds(t, append(check[1:], "--url", "http://127.0.0.1:"+s.port()), "alive")

	exec := words(t, "reprise.service", "ExecStart=")
	if exec[1] != "serve" {
		t.Fatalf("the unit runs %q", exec)
	}
	args := append([]string{"config", "--check"}, exec[2:]...)
	for i, a := range args {
		if strings.HasSuffix(a, ".yaml") {
			args[i] = write(t, filepath.Join(dir, "reprise.yaml"), "") // as its head says: touch
		}
	}
	succeeds(t, args, "no problems")
}
