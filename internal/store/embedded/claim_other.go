//go:build !unix

package embedded

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func lockFolder(vfs.File) (bool, error) { return false, nil }

func idOf(os.FileInfo) (fileID, bool) { return fileID{}, false }

func deleted(os.FileInfo) bool { return false }
