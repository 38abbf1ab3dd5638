package embedded

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/codec"
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
		c, got := codec.Read([]byte(stored)), &job.Extras{}
		if extraFields(&c, got); !c.Whole() || !reflect.DeepEqual(got, &job.Extras{Result: &want}) {
			t.Errorf("%q: %+v", stored, got.Result)
		}
		now := codec.Write(nil)
		if extraFields(&now, got); string(now.Bytes()) != stored {
			t.Errorf("now stored as %q, want %q", now.Bytes(), stored)
		}
	}
	for _, stored := range []string{"\xc0\x08" + ref + "\x05\x05[1,2]", "\x80\x08\x06[1,2]", "\x80\x08", "\x40" + ref[1:]} {
		c := codec.Read([]byte(stored))
		if extraFields(&c, &job.Extras{}); !c.Bad() {
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

// TestTheLayoutOfSessionsAndHoldersStays pins the stored form: these bytes are on
// disks.
func TestTheLayoutOfSessionsAndHoldersStays(t *testing.T) {
	for stored, row := range map[string]job.Row{
		"\x02\x01s\x01\t\x02{}\x03ann\x00\x00\x02\x04\x00\x00\x06\x04\x02\x00\x00\x00\x00\x01\x01e\x01\b\n\x01\x01t\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00": &job.Session{
			Name: "s", State: job.SessionClosed, By: job.Actor{Name: "ann"}, Info: []byte("{}"), Created: 1, Closed: 2,
			Submitted: 3, Done: 2, Failed: 1, Depends: true, Strikes: []job.Strike{{Engine: "e", Tasks: []job.ID{{'t'}}, Count: 1, Last: 4, Until: 5, Out: true}},
		},
		"\x02\x01w\x02\x01\n\x02\x01a\x011\x01b\x012": &job.Holder{Name: "w", Kind: job.Unary, Until: 5, Properties: map[string]string{"b": "2", "a": "1"}},
		"\x02\x01e\x00\x02\x00\x01h\b\f\x02\x04\x12\x01\x02\x01t\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00x": &job.Holder{Name: "e", Engine: &job.GridEngine{
			Host: "h", Slots: 4, Epoch: 6, LoggedIn: 1, Heard: 2, Draining: true, Stopping: []uint64{'x'},
			Health: job.Health{State: job.HealthSuspended, Until: 9, Row: []job.FastFail{{Task: job.ID{'t'}, Elsewhere: true}}},
		}},
	} {
		now, err := appendRow(nil, row)
		if err != nil || string(now) != stored {
			t.Errorf("now stored as %q, want %q, %v", now, stored, err)
		}
		got, err := decodeRow(row.Table(), row.Key(), []byte(stored))
		if err != nil || !reflect.DeepEqual(got, row) {
			t.Errorf("%q: %+v, %v", stored, got, err)
		}
	}
}
