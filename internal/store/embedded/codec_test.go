package embedded

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// TestEveryLayoutOfAFailureIsReadForever pins the stored form: these bytes are
// on disks.
func TestEveryLayoutOfAFailureIsReadForever(t *testing.T) {
	for stored, want := range map[string]job.Failure{
		"\x01\x02\x01E\x01m\x01b\x01h\xee\x07\x06\x08": {
			Number: 7, Attempt: 2, Type: "E", Message: "m", Backtrace: "b", Holder: "h", Status: 503, Started: 3, Failed: 4,
		},
		"\x02\x00\x00\x00\x00\x00\x00\x06\x08\x96\x01\x01": {Number: 7, ExitCode: 75, Timeout: true, Started: 3, Failed: 4},
	} {
		got, err := decodeFailure(7, []byte(stored))
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", stored, got, err)
		}
		if now := appendFailure(nil, &want); string(now) != stored {
			t.Errorf("now stored as %q, want %q", now, stored)
		}
	}
	for _, stored := range []string{"\x03\x00\x00\x00\x00\x00\x00\x06\x08", "\x02\x00\x00\x00\x00\x00\x00\x06\x08", "\x01\x00\x00\x00\x00\x00\x00\x06\x08\x00"} {
		if _, err := decodeFailure(7, []byte(stored)); job.KindOf(err) != job.Corrupt {
			t.Errorf("%q: %v", stored, err)
		}
	}
}
