package desk_test

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
)

func TestADoorKeepsSettingsBesideThoseOfTheQueue(t *testing.T) {
	scenario(t, func(r *rig) {
		tell := func(body []byte) string { return "told " + string(body) }
		set := func(name, body string) error {
			return r.Part.Desk.SetDoor(r.Context(), job.DoorSetting{Door: job.DoorInbox, Name: name, Body: []byte(body)}, func(q *job.Queue) error { failFirst(q); return nil }, tell, ann)
		}
		for _, name := range []string{"b", "a"} {
			if err := set(name, "1"); err != nil {
				t.Fatal(err)
			}
		}
		if err := set("a", "2"); err != nil {
			t.Fatal(err)
		}
		if err := set("a", "2"); err != nil { // the same again: nothing to note
			t.Fatal(err)
		}
		r.Restart(job.Second)
		list, err := r.Part.Desk.Doors(r.Context(), job.DoorInbox)
		if err != nil || len(list) != 2 || list[0].Name != "a" || string(list[0].Body) != "2" || list[1].Name != "b" {
			t.Fatalf("%+v, %v", list, err)
		}
		if list, err := r.Part.Desk.Doors(r.Context(), job.DoorGrid); err != nil || len(list) != 0 {
			t.Errorf("another door has %v, %v", list, err)
		}
		if q, _, err := r.Queue(r.Context(), "a"); err != nil || q.Order != job.OrderStrict {
			t.Errorf("the queue is %+v, %v", q, err)
		}
		audits, err := r.Part.Audit.List(r.Context(), job.ID{}, 9)
		if err != nil || len(audits) != 3 || audits[0].Changes[0].From != "told 1" || audits[0].Changes[0].To != "told 2" || audits[0].By.Name != "ann" {
			t.Errorf("%+v, %v", audits, err)
		}

		if err := r.Part.Desk.DropDoor(r.Context(), job.DoorInbox, "c", ann); job.KindOf(err) != job.NotFound {
			t.Error(err)
		}
		put := engine.NewJob{Job: job.Job{Door: job.DoorInbox, Queue: "a", Type: "t", Group: "g"}, Payload: []byte("1")}
		added, err := r.Put(r.Context(), []engine.NewJob{put})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Part.Desk.DropDoor(r.Context(), job.DoorInbox, "a", ann); job.KindOf(err) != job.WrongState || !strings.Contains(err.Error(), "has 1 that") {
			t.Error(err)
		}
		if _, err := r.Part.Desk.Do(r.Context(), ann, desk.Delete, added[0].ID); err != nil {
			t.Fatal(err)
		}
		if err := r.Part.Desk.DropDoor(r.Context(), job.DoorInbox, "a", ann); err != nil {
			t.Fatal(err)
		}
		if q, _, err := r.Queue(r.Context(), "a"); err != nil || q.Order != job.OrderNone {
			t.Errorf("the queue is %+v, %v", q, err)
		}
		if list, err := r.Part.Desk.Doors(r.Context(), job.DoorInbox); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// What came through the door inbox is remembered for a day at least, and a
// conflict of one message concerns no other one of its call.
func TestMessagesAreRefusedApartAndRememberedForADay(t *testing.T) {
	scenario(t, func(r *rig) {
		r.SetQueue("in", failFirst)
		message := func(key, body string) engine.NewJob {
			return engine.NewJob{Job: job.Job{Door: job.DoorInbox, Queue: "in", Type: "t", Group: "g"}, Payload: []byte(body), Key: key, Apart: true}
		}
		put := func(list ...engine.NewJob) []engine.Added {
			t.Helper()
			added, err := r.Put(r.Context(), list)
			if err != nil {
				t.Fatal(err)
			}
			return added
		}
		first := put(message("k", "1"))[0].ID
		out := put(message("k", "2"), message("k", "1"), message("k", "3"), message("l", "1"), message("l", "2"), message("l", "1"))
		var got []string
		for _, a := range out {
			switch {
			case a.Err != nil && a.ID.IsZero() && job.KindOf(a.Err) == job.Exists:
				got = append(got, "conflict")
			case a.Duplicate && a.Err == nil && a.ID == first:
				got = append(got, "duplicate")
			case a.Duplicate && a.Err == nil && a.ID == out[3].ID:
				got = append(got, "twin")
			case !a.Duplicate:
				got = append(got, "new")
			}
		}
		if s := strings.Join(got, " "); s != "conflict duplicate conflict new conflict twin" {
			t.Errorf("they are %s: %+v", s, out)
		}
		if s, err := enginetest.Stats(r.Context(), r.Engine); err != nil || s.Put != 2 || s.Duplicates != 2 {
			t.Errorf("%+v, %v", s, err)
		}
		recall := func(key string) job.ID {
			id, err := r.Recall(r.Context(), job.DoorInbox, "in", key)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		r.Pass(job.Day - 1)
		if recall("k") != first || !recall("x").IsZero() {
			t.Errorf("k is %s, x %s; k was %s", recall("k"), recall("x"), first)
		}
		r.Pass(1)
		if !recall("k").IsZero() {
			t.Error("k is remembered for longer than a day")
		}
		if added := put(message("k", "2")); added[0].Duplicate {
			t.Error("after a day k is not free")
		}
	})
}
