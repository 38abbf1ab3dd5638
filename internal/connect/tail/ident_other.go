//go:build !unix

package tail

import (
	"io/fs"
	"os"
)

// identify names a file by its path, where there is nothing better.
func identify(_ fs.FileInfo, path string) string { return path }

func open(path string) (*os.File, error) { return os.Open(path) }
