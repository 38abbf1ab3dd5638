package fluentconf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files and variables of this machine: a file has one identity by all its names.
func TestSystem(t *testing.T) {
	folder, from := t.TempDir(), System()
	path, link := filepath.Join(folder, "a.conf"), filepath.Join(folder, "b.conf")
	if err := os.WriteFile(path, []byte("[INPUT]\n Name ${HOSTNAME}\n Tag ${REPRISE_TEST_X}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	text, one, err := from.Read(path, 1000)
	_, two, err2 := from.Read(link, 1000)
	if err != nil || err2 != nil || one != two || !strings.HasPrefix(string(text), "[INPUT]") {
		t.Errorf("%q %q %q, %v %v", text, one, two, err, err2)
	}
	if _, _, err := from.Read(path, int64(len(text))); err != nil {
		t.Error(err)
	}
	if _, _, err := from.Read(path, int64(len(text))-1); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if _, _, err := from.Read(folder+"/no", 1000); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	main := filepath.Join(folder, "main.conf")
	if err := os.WriteFile(main, []byte("@INCLUDE ?.conf*\n@INCLUDE .\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOSTNAME", "")
	if err := os.Unsetenv("HOSTNAME"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REPRISE_TEST_X", "x")
	if _, found := from.Lookup("REPRISE_TEST_NO"); found {
		t.Error("a variable that is not set is found")
	}
	r := &Report{}
	if got := show(Load(main, nil, from, r).Sections); got != "input[name="+host+" tag=x]" {
		t.Error(got)
	}
	if p := r.Problems(); len(p) != 2 || !strings.Contains(p[0].Text, "is read already") || !strings.Contains(p[1].Text, "is a directory") {
		t.Errorf("%v", p)
	}
}

func TestHostnameOfTheEnvironment(t *testing.T) {
	t.Setenv("HOSTNAME", "other")
	if got, found := System().Lookup("HOSTNAME"); got != "other" || !found {
		t.Error(got)
	}
}
