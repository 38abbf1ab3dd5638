package config

import (
	"fmt"
	"reflect"
	"testing"
)

// A reload lets hold what can change while the server runs, and names the rest.
func TestAReloadChangesWhatItCanAndNamesTheRest(t *testing.T) {
	was, _, err := load(t, []string{"--port=1", "--max-queues=5"}, nil, "retry: {curve: {kind: constant, delay: 1s}}")
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := load(t, []string{"--port=2", "--max-queues=6", "--allow-host=a.example", "--sync=os"}, nil, "queues: {q: {max_jobs: 1}}")
	if err != nil {
		t.Fatal(err)
	}
	now, pending := Reloaded(was, next)
	if got, want := fmt.Sprint(pending), "[{port 1 2} {sync always os}]"; got != want {
		t.Errorf("pending is %s, want %s", got, want)
	}
	want := next
	want.Port, want.Sync = 1, SyncAlways
	if !reflect.DeepEqual(now, want) {
		t.Errorf("in effect is\n%+v, want\n%+v", now, want)
	}
	if _, pending := Reloaded(now, now); pending != nil {
		t.Errorf("nothing changed but %v", pending)
	}
}
