package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/notation"
)

// secretsFrom replaces ${file:NAME} in headers of an endpoint that was set over
// the API by the contents of that file in dir, which links do not lead out of.
// So what is stored is the name. Without a directory a reference is refused. secrets
// are those contents.
func secretsFrom(dir string, headers map[string]string) (filled map[string]string, secrets []string, err error) {
	filled = make(map[string]string, len(headers))
	for name, value := range headers {
		text, some, err := config.Expand(value, func(reference string) (string, error) { return readSecret(dir, reference) })
		if err == nil && strings.ContainsAny(text, "\r\n\x00") {
			err = errors.New("what the reference stands for must be one line")
		}
		if err != nil {
			return nil, nil, &job.Error{Kind: job.Invalid, Field: "headers." + name, Text: err.Error()}
		}
		filled[name], secrets = text, append(secrets, some...)
	}
	return filled, secrets, nil
}

func readSecret(dir, reference string) (string, error) {
	name, is := strings.CutPrefix(reference, "file:")
	switch {
	case !is || name == "":
		return "", fmt.Errorf("%s: over the API only ${file:NAME} is a reference; write $${ for the two characters themselves", notation.Quote("${"+reference+"}"))
	case dir == "":
		return "", fmt.Errorf("${file:%s}: the server has no directory of secrets; its setting is egress.secrets_dir", name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("${file:%s}: egress.secrets_dir cannot be opened", name)
	}
	defer root.Close()                                               //nolint:errcheck // it was only read
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for who writes to it
	if err != nil {
		return "", fmt.Errorf("${file:%s}: there is no such file in egress.secrets_dir that the server may read", name)
	}
	defer f.Close() //nolint:errcheck // it was only read
	var b []byte
	if is, err := f.Stat(); err == nil && is.Mode().IsRegular() {
		b, _ = io.ReadAll(io.LimitReader(f, secretBytesMax+1))
	}
	if len(b) == 0 || len(b) > secretBytesMax {
		return "", fmt.Errorf("${file:%s}: is not a file of 1 byte to %s", name, notation.ShowSize(secretBytesMax))
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// secretBytesMax is how large a secret of the API may be.
const secretBytesMax = 64 << 10
