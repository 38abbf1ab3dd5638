package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/child"
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
	p, err := child.Start(context.Background(), filepath.Join(path, "reprise"), nil, nil,
		"serve", "--port", "0", "--no-admin", "--log-format", "json", "--root-dir", dir)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() {
		_ = p.Stop()
		_ = os.RemoveAll(dir)
	}
	addr, _, err := p.Listening(context.Background(), 30*time.Second)
	if err != nil {
		stop()
		return "", nil, err
	}
	return "http://" + addr, stop, nil
}
