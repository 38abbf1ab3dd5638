package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/rule"
)

func TestTheDocumentOfTheTableIsFresh(t *testing.T) {
	if err := run(filepath.Join("../..", path), true); err != nil {
		t.Fatal(err)
	}
}

func TestTheDocumentShowsTheTableAndADrawingOfIt(t *testing.T) {
	doc := document()
	for _, want := range []string{
		rule.Markdown(), "stateDiagram-v2", "[*] --> ready: put", "ready --> leased: take", "done --> [*]: purge",
		"dead --> ready: revive", "exhausted, killed, expired, lost, rejected, evicted, cancelled",
	} {
		if !strings.Contains(doc, want) {
			t.Errorf("the document lacks %q", want)
		}
	}
}

func TestCheckFailsForAStaleOrMissingDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "states.md")
	if err := run(file, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing document: %v", err)
	}
	if err := os.WriteFile(file, []byte(document()+"edited by hand\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(file, true); !errors.Is(err, errStale) {
		t.Errorf("a stale document: %v", err)
	}
	if err := run(file, false); err != nil {
		t.Fatal(err)
	}
	if err := run(file, true); err != nil {
		t.Errorf("a fresh document: %v", err)
	}
}
