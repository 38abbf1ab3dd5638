package fluent

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/fluentconf"
)

// TestPublishedConfigurations loads configurations of the kinds that people publish, and
// compares what a user is told with the file beside each.
func TestPublishedConfigurations(t *testing.T) {
	var list []string
	for _, pattern := range []string{"*.conf", "*.yaml"} {
		found, err := filepath.Glob("testdata/published/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	count := 0
	for _, path := range list {
		if strings.HasPrefix(filepath.Base(path), "parsers-") {
			continue
		}
		count++
		t.Run(filepath.Base(path), func(t *testing.T) {
			got, golden := told(path), strings.TrimSuffix(path, filepath.Ext(path))+".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s\nIf it is meant so: go test ./internal/fluent -run TestPublishedConfigurations -update", got, want)
			}
		})
	}
	if count < 25 {
		t.Errorf("there are only %d configurations", count)
	}
}

// told is what a user is told of a configuration on a machine that has only the files of
// the test.
func told(path string) string {
	from := fluentconf.System()
	read := from.Read
	from.Read = func(path string, most int64) ([]byte, string, error) {
		if filepath.IsAbs(path) {
			return nil, "", fs.ErrNotExist
		}
		return read(path, most)
	}
	from.Lookup = func(name string) (string, bool) {
		if name == "FLUSH_SECONDS" {
			return "", false
		}
		return "some", true
	}
	var r fluentconf.Report
	c := Load(Options{
		Name: "p", Path: path, From: from, Stdin: strings.NewReader(""), Stdout: io.Discard, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}, &r)
	var b strings.Builder
	if r.Err() == nil {
		fmt.Fprintf(&b, "runs with %d inputs, %d filters and %d outputs\n", len(c.Inputs), len(c.Filters), len(c.Outputs))
	}
	for _, p := range r.Problems() {
		fmt.Fprintf(&b, "%s\n", p)
	}
	for _, n := range r.Notices() {
		fmt.Fprintf(&b, "%s: notice: %s\n", n.At, n.Text)
	}
	return strings.ReplaceAll(b.String(), filepath.Dir(path)+"/", "")
}
