package rule

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/reprisehq/reprise/internal/job"
)

// What a fingerprint looks at, at most.
const (
	printMessageMax = 4 << 10 // bytes of a message (core.md section 9)
	printFramesMax  = 3       // own stack frames, nearest to the failure
)

// Fingerprint tells kinds of failures apart: equal ones have the same error
// type, the same message but for what changes from job to job (numbers, ids,
// hexadecimal, quoted texts, timestamps: Essence), and the same own code
// nearest to the failure (Frames). It is never 0, and stays what it is: groups
// and their notes are kept under it.
func Fingerprint(f *job.Failure) job.Fingerprint {
	b := make([]byte, 0, 512)
	part := func(s string) { // each with its length, so that none runs into the next
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	part(f.Type)
	part(Essence(f.Message))
	for _, frame := range Frames(f.Backtrace) {
		part(frame)
	}
	sum := sha256.Sum256(b)
	return max(1, job.Fingerprint(binary.BigEndian.Uint64(sum[:])))
}
