package measure

import (
	"bytes"
	"fmt"
	"strings"
)

// PayloadBytes is the size of each job's payload.
const PayloadBytes = 128

const (
	sequenceDigits = 16
	payloadOpening = `{"seq":"`
	payloadClosing = `","pad":"`
	payloadEnd     = `"}`
)

// newPayload is JSON of PayloadBytes that carries the number of its job. The
// digits are rewritten for each job (putNumber).
func newPayload() []byte {
	pad := PayloadBytes - len(payloadOpening) - sequenceDigits - len(payloadClosing) - len(payloadEnd)
	return fmt.Appendf(nil, "%s%0*d%s%s%s", payloadOpening, sequenceDigits, 0, payloadClosing, strings.Repeat("x", pad), payloadEnd)
}

func putNumber(payload []byte, n int64) {
	digits := payload[len(payloadOpening) : len(payloadOpening)+sequenceDigits]
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
}

// numberOf finds the number of a delivered payload. PostgreSQL's jsonb keeps
// neither the order nor the spacing of fields, so it is looked for.
func numberOf(payload []byte) (int64, error) {
	const mark = `"seq"`
	at := bytes.Index(payload, []byte(mark))
	if at >= 0 {
		rest := bytes.TrimLeft(payload[at+len(mark):], `: "`)
		if len(rest) > sequenceDigits && rest[sequenceDigits] == '"' {
			var n int64
			for _, digit := range rest[:sequenceDigits] {
				if digit < '0' || digit > '9' {
					return 0, fmt.Errorf("a delivered payload carries no number: %.100s", payload)
				}
				n = n*10 + int64(digit-'0')
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("a delivered payload is not ours: %.100s", payload)
}
