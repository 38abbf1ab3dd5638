package tail

import (
	"encoding/binary"
	"hash/fnv"
	"os"
)

// printBytesMax is how much of the beginning of a file tells it from others.
const printBytesMax = 1024

// cursor is how far a file was taken. Its form in the store is version 1: the version,
// the flags, the offset, the length and the sum of the fingerprint, and the path.
type cursor struct {
	at       int64
	skipping bool // the offset lies in a line of which nothing more is wanted
	print    fingerprint
	path     string // where the file was last seen
}

const (
	cursorVersion = 1
	flagSkipping  = 1

	marker = "started" // a cursor that says that this is not the first run
)

func (c *cursor) encode() []byte {
	flags := byte(0)
	if c.skipping {
		flags = flagSkipping
	}
	b := binary.AppendUvarint([]byte{cursorVersion, flags}, uint64(c.at))
	b = binary.AppendUvarint(b, uint64(c.print.size))
	b = binary.BigEndian.AppendUint64(b, c.print.sum)
	return append(b, c.path...)
}

// decodeCursor reports whether a value is a cursor of this version.
func decodeCursor(b []byte) (c cursor, ok bool) {
	if len(b) < 2 || b[0] != cursorVersion {
		return cursor{}, false
	}
	c.skipping, b = b[1]&flagSkipping != 0, b[2:]
	at, n := binary.Uvarint(b)
	if n <= 0 || at > 1<<62 {
		return cursor{}, false
	}
	c.at, b = int64(at), b[n:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > printBytesMax || len(b) < n+8 {
		return cursor{}, false
	}
	c.print = fingerprint{int(size), binary.BigEndian.Uint64(b[n:])}
	c.path = string(b[n+8:])
	return c, true
}

// fingerprint is the sum of the first bytes of a file. It knows a file again whose inode
// was given to another, and one that was cut and written anew.
type fingerprint struct {
	size int
	sum  uint64
}

// printOf is the fingerprint of the first bytes of a file, or of less if it is shorter.
func printOf(f *os.File, size int) fingerprint {
	var buf [printBytesMax]byte
	n, _ := f.ReadAt(buf[:min(size, printBytesMax)], 0) // what cannot be read is not the same
	if n == 0 {
		return fingerprint{}
	}
	h := fnv.New64a()
	_, _ = h.Write(buf[:n]) // never fails
	return fingerprint{n, h.Sum64()}
}
