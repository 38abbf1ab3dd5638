package embedded

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// inMemory is a store on a file system in memory, and what updates it.
func inMemory(t *testing.T) (s *Store, update func(func(store.Tx) error)) {
	s, err := Open(Options{Dir: "root", FS: vfs.NewMem(), Now: func() job.Millis { return 1 }, Cache: 1 << 20, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, func(f func(store.Tx) error) {
		t.Helper()
		c, err := s.Update(t.Context(), f)
		if err == nil {
			err = c.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Who takes job by job off a line that is not in memory goes to the disk once for
// many, gets each in its turn as it was written, and keeps no large payload in
// memory.
func TestWhoTakesFewReadsThoseBehindThemAhead(t *testing.T) {
	const all, large = 3*aheadMax/2 + 1, 5
	s, update := inMemory(t)
	var put []*job.Job
	var bodies [][]byte
	update(func(tx store.Tx) error {
		ids := job.NewIDs(job.ID{}, func() uint64 { return 7 })
		for i := range all {
			id, body := ids.Next(1), []byte(fmt.Sprint("payload ", i))
			if i == large {
				body = bytes.Repeat([]byte{1}, aheadBytes+1)
			}
			j := &job.Job{
				ID: id, Queue: "q", Type: "t", State: job.Ready, Band: job.BandNormal, Seq: int64(i), Created: 1, ReadyAt: 1,
				Payload: id, PayloadSize: uint32(len(body)), Copies: 1, CopiesWanted: 1, RetainDone: job.Unset, RetainDead: job.Unset,
			}
			put, bodies = append(put, j), append(bodies, body)
			if err := tx.PutPayload(id, body); err != nil {
				return err
			}
			if err := tx.Write(nil, j); err != nil {
				return err
			}
		}
		return nil
	})
	if err := s.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := s.View(t.Context(), func(v store.Reader) error {
		_, err := v.Ready([]string{"q"}, rule.Seeker{Holder: "h"}, 1)
		return err
	})
	if _, hot := s.hot.jobs.get(put[1].ID); err != nil || hot {
		t.Errorf("one that only reads changed what is in memory, or could not: %v", err)
	}
	for i, want := range put {
		update(func(tx store.Tx) error {
			list, err := tx.Ready([]string{"q"}, rule.Seeker{Holder: "h"}, 1)
			if err != nil || len(list) != 1 || list[0].ID != want.ID || list[0].Seq != want.Seq {
				return fmt.Errorf("take %d: got %v, %w", i, list, err)
			}
			body := tx.Peek(want.Payload)
			if i == large && body != nil || i != large && !bytes.Equal(body, bodies[i]) {
				t.Errorf("take %d: the payload at hand is %d bytes, it has %d", i, len(body), len(bodies[i]))
			}
			return tx.Write(list[0], nil)
		})
		if i == 0 {
			for k, j := range put[1:] {
				if _, hot := s.hot.jobs.get(j.ID); hot != (k+1 < aheadMax) {
					t.Errorf("after the first take, %d being in memory is %v", k+1, hot)
				}
			}
		}
	}
}

// Who takes turns of groups that are not in memory goes to the disk once for the
// members of many; who takes only their heads reads no others.
func TestWhoTakesTurnsReadsTheMembersOfManyGroupsAhead(t *testing.T) {
	const groups, each = 40, 10
	s, update := inMemory(t)
	members := map[string][]*job.Job{}
	update(func(tx store.Tx) error {
		q := job.NewQueue("q")
		q.Order, q.Turns, q.Protection.Fair = job.OrderStrict, true, &job.FairShare{}
		if err := tx.Set(q); err != nil {
			return err
		}
		ids := job.NewIDs(job.ID{}, func() uint64 { return 7 })
		for i := range groups * each {
			id, group := ids.Next(1), fmt.Sprint("group ", i%groups)
			j := &job.Job{
				ID: id, Queue: "q", Type: "t", Group: group, Order: job.OrderStrict, State: job.Ready, Band: job.BandNormal, Seq: int64(i),
				Created: 1, ReadyAt: 1, Payload: id, PayloadSize: 1, Copies: 1, CopiesWanted: 1, RetainDone: job.Unset, RetainDead: job.Unset,
			}
			members[group] = append(members[group], j)
			if err := tx.PutPayload(id, []byte{byte(i)}); err != nil {
				return err
			}
			if err := tx.Write(nil, j); err != nil {
				return err
			}
		}
		return nil
	})
	// take returns how many members of the groups but their heads are hot after a
	// turn of the group was asked for that stands first.
	take := func(want string, most int) (hot int) {
		t.Helper()
		update(func(tx store.Tx) error {
			heads, err := tx.Ready([]string{"q"}, rule.Seeker{Holder: "h", Turns: true, Members: most}, 1)
			if err != nil || len(heads) != 1 || heads[0].Group != want {
				return fmt.Errorf("the turn of %q: got %v, %w", want, heads, err)
			}
			for _, list := range members {
				for _, j := range list[1:] {
					if _, ok := s.hot.jobs.get(j.ID); ok {
						hot++
					}
				}
			}
			return nil
		})
		return hot
	}
	for _, c := range []struct{ most, hot int }{{1, 0}, {3, 2 * groups}, {each, aheadMax}} {
		if err := s.Reopen(t.Context()); err != nil {
			t.Fatal(err)
		}
		if hot := take("group 0", c.most); hot != c.hot {
			t.Errorf("with turns of %d, %d members are in memory, want %d", c.most, hot, c.hot)
		}
	}
	for g := range groups {
		group := fmt.Sprint("group ", g)
		take(group, each)
		update(func(tx store.Tx) error {
			list, err := tx.Wanting("q", group, nil, each)
			if err != nil || len(list) != each {
				return fmt.Errorf("%q: got %v, %w", group, list, err)
			}
			for i, j := range list {
				if body := tx.Peek(j.Payload); j.ID != members[group][i].ID || len(body) != 1 || body[0] != byte(j.Seq) {
					t.Errorf("%q: member %d is %s with the payload %v", group, i, j.ID, body)
				}
				if err := tx.Write(j, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
