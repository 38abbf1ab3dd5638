package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// serverMark stands in a document whose examples need a server. They find it
// by $REPRISE_URL.
const serverMark = "<!-- examples with a server -->"

// serve starts a server on an empty directory, if the document wants one.
func serve(document []byte, path string) (url string, stop func(), err error) {
	if !strings.Contains(string(document), serverMark) {
		return "", func() {}, nil
	}
	dir, err := os.MkdirTemp("", "rundoc-server-")
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(filepath.Join(path, "reprise"), "serve", "--port", "0", "--no-admin", "--log-format", "json", "--root-dir", dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	var rest sync.WaitGroup
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		rest.Wait()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var entry struct{ Fields struct{ API, Addr string } }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Fields.API == "primary" {
			rest.Go(func() { _, _ = io.Copy(io.Discard, out) })
			return "http://" + entry.Fields.Addr, stop, nil
		}
	}
	stop()
	return "", nil, errors.New("the server of the examples ended without listening")
}
