package job

import (
	"errors"
	"strconv"
)

// Fingerprint names a kind of failure: jobs that died of the same thing have
// the same one and form a group (retry.md section 3). 0 = never failed.
type Fingerprint uint64

// ErrFingerprint says that a text is not a fingerprint.
var ErrFingerprint = errors.New("a fingerprint has exactly 16 hexadecimal characters, in small letters")

const fingerprintChars = 16

func (p Fingerprint) String() string {
	const digits = "0123456789abcdef"
	var b [fingerprintChars]byte
	for i := range b {
		b[i] = digits[p>>(60-4*i)&15]
	}
	return string(b[:])
}

// ParseFingerprint reads the 16 characters of a fingerprint.
func ParseFingerprint(s string) (Fingerprint, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if p := Fingerprint(n); err == nil && p.String() == s {
		return p, nil
	}
	return 0, ErrFingerprint
}
