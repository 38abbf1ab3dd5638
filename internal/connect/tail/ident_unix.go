//go:build unix

package tail

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// identify names a file by its device and inode, so that it keeps its name when it is
// renamed.
func identify(info fs.FileInfo, _ string) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(uint64(st.Dev), 16) + ":" + strconv.FormatUint(st.Ino, 16) //nolint:unconvert // of another type elsewhere
}

// open never waits, also not for the writer of a fifo that has taken the place of a file.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
