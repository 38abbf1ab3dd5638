package fluentconf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrTooLarge is what Source.Read says of a file with more bytes than asked for.
var ErrTooLarge = errors.New("is too large")

// Source is where files and variables come from.
type Source struct {
	// Read reads a file of at most so many bytes. identity is the same for all names of a file.
	Read func(path string, most int64) (text []byte, identity string, err error)
	// Glob gives the names of the files that a pattern names, sorted.
	Glob func(pattern string) ([]string, error)
	// Lookup finds a variable of the environment.
	Lookup func(name string) (value string, found bool)
}

// System is the files and the environment of this machine.
func System() Source {
	return Source{Read: readFile, Glob: filepath.Glob, Lookup: func(name string) (string, bool) {
		value, found := os.LookupEnv(name)
		if !found && name == "HOSTNAME" { // shells know it without exporting it
			host, err := os.Hostname()
			return host, err == nil
		}
		return value, found
	}}
}

func readFile(path string, most int64) (text []byte, identity string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	text, err = io.ReadAll(io.LimitReader(file, most+1))
	if err = errors.Join(err, file.Close()); err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%w for %d bytes", ErrTooLarge, most)
	}
	if real, links := filepath.EvalSymlinks(path); links == nil {
		path = real
	}
	identity, absolute := filepath.Abs(path)
	return text, identity, errors.Join(err, absolute)
}
