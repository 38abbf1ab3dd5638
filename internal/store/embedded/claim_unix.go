//go:build unix

package embedded

import (
	"errors"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lockFolder locks an open directory for this process. It reports false where the file
// system knows no such lock, and an error if another process has it.
func lockFolder(dir vfs.File) (bool, error) {
	if dir.Fd() == vfs.InvalidFd {
		return false, nil
	}
	err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a descriptor
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, err
	}
	return err == nil, nil
}

// idOf is false for a file that is in memory only.
func idOf(info os.FileInfo) (fileID, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{uint64(s.Dev), s.Ino}, true //nolint:unconvert // it has other types on other systems
}

// deleted reports that an open file has no name any more.
func deleted(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink == 0
}
