package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// doubtful are kinds of file systems on which a sync or a lock means less than
// it says, by their numbers in statfs(2).
var doubtful = map[int64]string{
	0x01021994: "tmpfs: it is memory, and gone after a restart of the machine",
	0x858458f6: "ramfs: it is memory, and gone after a restart of the machine",
	0x794c7630: "overlayfs: the layer of a container, gone with it; mount a volume",
	0x6969:     "NFS: neither locks nor syncs can be relied upon",
	0xff534d42: "CIFS: neither locks nor syncs can be relied upon",
	0xfe534d42: "SMB: neither locks nor syncs can be relied upon",
	0x65735546: "FUSE: what a sync does is up to its program",
	0x01021997: "9p: what a sync does is up to the host",
}

// access looks at owner, mode and kind of the directory.
func (out *Findings) access(dir string, info fs.FileInfo) {
	if unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) != nil {
		out.fail("directory", "give it to the user that runs the server: chown -R USER "+dir, "%s cannot be written by user %d", dir, os.Geteuid())
		return
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		out.warn("directory", "chown -R USER "+dir+", and run the server as that user", "%s belongs to user %d, you are %d", dir, st.Uid, os.Geteuid())
	} else if list := exposed(dir); len(list) > 0 {
		out.warn("directory", "chmod -R go-rwx "+dir+"; a server does it when it starts", "others than the owner of %s have rights on %d of its files, such as %s", dir, len(list), list[0])
	} else {
		out.ok("directory", "%s, mode %o", dir, info.Mode().Perm())
	}
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return
	}
	if why, bad := doubtful[int64(st.Type)&0xffffffff]; bad { //nolint:unconvert // the type differs between machines
		out.warn("file system", "put the directory on a local disk (ext4, xfs, ...)", "%s", why)
		return
	}
	out.ok("file system", "a kind on which a sync is what it says (%#x)", int64(st.Type)) //nolint:unconvert // as above
}

// clockSynced asks the kernel whether the clock is kept in step.
func clockSynced() (synced, known bool) {
	var tx unix.Timex
	state, err := unix.Adjtimex(&tx)
	if err != nil {
		return false, false
	}
	return state != unix.TIME_ERROR, true
}

// limits looks at what the system allows the process.
func (out *Findings) limits() {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		if l.Cur < 4096 && l.Max < 4096 { // Go raises the soft limit to the hard one
			out.warn("open files", "raise it: LimitNOFILE=65536 in a systemd unit, ulimits in a container",
				"at most %d: each connection needs one, the store some hundred", l.Max)
		} else {
			out.ok("open files", "at most %d", max(l.Cur, l.Max))
		}
	}
	most, known := memoryMax()
	switch {
	case !known:
	case most < 512<<20:
		out.warn("memory", "allow at least 512 MiB, or lower --cache-size and --max-inflight-bytes, and set GOMEMLIMIT below it", "the control group allows %d MiB", most>>20)
	default:
		out.ok("memory", "the control group allows %d MiB", most>>20)
	}
}

// memoryMax is the limit of the control group of this process, the lowest of
// those above it.
func memoryMax() (most int64, known bool) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for ; ok; path = filepath.Dir(path) {
			b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", path, "memory.max"))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && bad == nil && (!known || n < most) {
				most, known = n, true
			}
			if path == "/" || path == "." {
				break
			}
		}
	}
	return most, known
}
