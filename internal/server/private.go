package server

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
)

const others = fs.FileMode(0o077) // the rights of everybody but the owner

// kept is what a server makes in its directory.
var kept = []string{".", "LOCK", "FORMAT", "data", "data/*"}

// exposed finds what of a data directory others than its owner have rights on.
func exposed(dir string) (list []string) {
	for _, name := range kept {
		paths := []string{filepath.Join(dir, name)}
		if name == "data/*" {
			paths = nil
			entries, _ := os.ReadDir(filepath.Join(dir, "data")) // what cannot be read is told by who opens it
			for _, e := range entries {
				paths = append(paths, filepath.Join(dir, "data", e.Name()))
			}
		}
		for _, path := range paths {
			if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 && info.Mode()&others != 0 {
				list = append(list, path)
			}
		}
	}
	return list
}

// tighten takes from others the rights that an earlier version, or who made the
// directory, left them: it holds payloads and tokens.
func tighten(dir string, log *slog.Logger) {
	if !hasOwners {
		return
	}
	mended, first := 0, ""
	for _, path := range exposed(dir) {
		info, err := os.Lstat(path)
		if err == nil {
			err = os.Chmod(path, info.Mode()&^others)
		}
		if err != nil {
			log.Warn("others may read the data directory, and this user cannot change that; give it to the user of the server and take their rights: chmod -R go-rwx",
				"path", path, "error", err)
			return
		}
		if mended++; first == "" {
			first = path + " was " + strconv.FormatUint(uint64(info.Mode().Perm()), 8)
		}
	}
	if mended > 0 {
		log.Warn("took away the rights that others had on the data directory", "files", mended, "first", first)
	}
}
