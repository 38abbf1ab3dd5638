package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The layout of Pebble's log (its package record, "WAL sync chunks"): blocks
// of 32 KiB, in each of them chunks of
//
//	checksum (4) | length of the content (2) | type (1) | number of the log (4) | synced up to (8) | content
//
// "Synced up to" is the offset that was durable when the chunk was written.
const (
	logBlock       = 32 << 10
	chunkHeader    = 19
	chunkTypeFirst = 9
	chunkTypeLast  = 12
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// logChunk reads the chunk at the start of b: its whole size and what it says
// is synced. Anything but an intact chunk of the log is refused.
func logChunk(b []byte, log uint32) (size int, synced int64, ok bool) {
	if len(b) < chunkHeader || b[6] < chunkTypeFirst || b[6] > chunkTypeLast || binary.LittleEndian.Uint32(b[7:]) != log {
		return 0, 0, false
	}
	size = chunkHeader + int(binary.LittleEndian.Uint16(b[4:]))
	if size > len(b) {
		return 0, 0, false
	}
	if chunkSum(b[:size]) != binary.LittleEndian.Uint32(b) {
		return 0, 0, false
	}
	return size, int64(binary.LittleEndian.Uint64(b[11:])), true //nolint:gosec // an offset in a file
}

// chunkSum is the checksum of a chunk.
func chunkSum(chunk []byte) uint32 {
	sum := crc32.Checksum(chunk[6:], castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// checkLogTail refuses a directory whose newest log is damaged before a place
// it once was synced up to. Where a chunk is not intact, Pebble looks for such
// a promise from the next block on; this looks through the rest of the same
// block, which in the newest log is often the last one. Without it what stands
// there would be taken for a torn end and dropped in silence (I5).
func checkLogTail(fs vfs.FS, dir string) (err error) {
	path, number, err := newestLog(fs, dir)
	if err != nil || path == "" {
		return err
	}
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := make([]byte, logBlock)
	for start := int64(0); ; start += logBlock {
		n, err := io.ReadFull(f, block)
		if n == 0 || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		at := 0
		for {
			size, _, ok := logChunk(block[at:n], number)
			if !ok {
				break
			}
			at += size
		}
		if at+chunkHeader > n && n == logBlock {
			continue // what is left of the block is too short for a chunk
		}
		for next := at + 1; next+chunkHeader <= n; next++ {
			if _, synced, ok := logChunk(block[next:n], number); ok && synced > start+int64(at) {
				return corrupt("%s is damaged at byte %d, and was on disk up to byte %d", path, start+int64(at), synced)
			}
		}
		return nil
	}
}

// newestLog finds the log with the highest number; Pebble names it by that.
func newestLog(fs vfs.FS, dir string) (path string, number uint32, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return "", 0, fmt.Errorf("looking for the log: %w", err)
	}
	var newest uint64
	for _, name := range names {
		digits, isLog := strings.CutSuffix(name, ".log")
		n, err := strconv.ParseUint(digits, 10, 64)
		if isLog && err == nil && (path == "" || n > newest) {
			path, newest = fs.PathJoin(dir, name), n
		}
	}
	return path, uint32(newest), nil //nolint:gosec // chunks carry the low half
}
