package embedded

import (
	"encoding/json"
	"reflect"
	"strings"
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

// TestEveryLayoutOfAResultIsReadForever does so for results: those that are
// payloads, which small ones were once, too, and those that are in their job.
func TestEveryLayoutOfAResultIsReadForever(t *testing.T) {
	ref := strings.Repeat("\x07", 16)
	for stored, want := range map[string]job.Result{
		"\x40" + ref + "\x05":     {Ref: job.ID([]byte(ref)), Size: 5},
		"\x40" + ref + "\x81\x02": {Ref: job.ID([]byte(ref)), Size: 257},
		"\x80\x08\x05[1,2]":       {Size: 5, Bytes: []byte("[1,2]")},
		"\x80\x08\x00":            {Bytes: []byte{}},
	} {
		r := reader{b: []byte(stored)}
		got := r.extras()
		if r.bad || len(r.b) != 0 || !reflect.DeepEqual(got, &job.Extras{Result: &want}) {
			t.Errorf("%q: %+v", stored, got.Result)
		}
		if now := appendExtras(nil, &job.Extras{Result: &want}); string(now) != stored {
			t.Errorf("now stored as %q, want %q", now, stored)
		}
	}
	for _, stored := range []string{"\xc0\x08" + ref + "\x05\x05[1,2]", "\x80\x08\x06[1,2]", "\x80\x08", "\x40" + ref[1:]} {
		r := reader{b: []byte(stored)}
		if r.extras(); !r.bad {
			t.Errorf("%q is a result", stored)
		}
	}
}

// Sessions and holders were JSON once, and data of then is still read.
func TestSessionsAndHoldersOfTheFirstLayout(t *testing.T) {
	for _, row := range sampleRows() {
		switch row.(type) {
		case *job.Session, *job.Holder:
		default:
			continue
		}
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeRow(row.Table(), row.Key(), append([]byte{1}, text...))
		if err != nil || !reflect.DeepEqual(got, row) {
			t.Errorf("%s\nwas read as\n%+v, %v", text, got, err)
		}
	}
}
