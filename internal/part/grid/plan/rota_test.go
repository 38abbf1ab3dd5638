package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
)

func joined(r *Rota, name string, weight, waiting int) *Share {
	s := r.Join(name, Claim{Weight: weight})
	r.Wait(s, waiting)
	return s
}

func TestA21SuspendedSessionsFinishWhatRuns(t *testing.T) {
	r := NewRota(1)
	r.SetSlots(4)
	a, b := joined(r, "a", 5, 10), joined(r, "b", 5, 10)
	for range 4 {
		r.Start(r.Pick(nil))
	}
	if a.Running != 2 || b.Running != 2 {
		t.Fatalf("a runs %d, b %d", a.Running, b.Running)
	}
	r.Change(a, Claim{Weight: 0})
	if a.Running != 2 {
		t.Error("what ran was taken away")
	}
	r.End(a)
	r.End(a)
	for range 2 {
		s := r.Pick(nil)
		if s != b {
			t.Fatalf("%v was picked", s)
		}
		r.Start(s)
	}
	r.Change(a, Claim{Weight: 5})
	for range 4 {
		r.End(b)
		r.Start(r.Pick(nil))
	}
	if a.Running != 2 || b.Running != 2 {
		t.Errorf("after it resumed a runs %d, b %d", a.Running, b.Running)
	}
}

func TestASlotIsNotLeftIdleForAShare(t *testing.T) {
	r := NewRota(1)
	r.SetSlots(4)
	a, b := joined(r, "a", 9, 10), joined(r, "b", 1, 10)
	onlyB := func(s *Share) bool { return s == b }
	for range 4 {
		if s := r.Pick(onlyB); s != b {
			t.Fatalf("%v was picked", s)
		}
		r.Start(b)
	}
	if r.Pick(func(*Share) bool { return false }) != nil {
		t.Error("who does not fit was picked")
	}
	if r.End(b); r.Pick(nil) != a {
		t.Error("a is below its share")
	}
	r.Change(a, Claim{Weight: 9, Max: 1})
	if r.Start(r.Pick(nil)); r.Pick(nil) != b {
		t.Error("a has more engines than it may")
	}
	r.Leave(a)
	if got := r.Targets(); len(got) != 1 || got[0].Target != 4 {
		t.Errorf("b is alone and has %d", got[0].Target)
	}
	r.Leave(b)
	if r.Pick(nil) != nil {
		t.Error("nobody is there")
	}
}

// The shares that a rota works out only now and then are those of the moment,
// and who it picks is who is furthest below them.
func TestARotaFollowsTheShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, least := NewRota(1), 1
		slots, busy, n := 0, 0, 0
		draw := func() Claim {
			return Claim{Weight: rapid.IntRange(0, 9).Draw(t, "weight"), Max: rapid.IntRange(0, 6).Draw(t, "max"), Urgent: rapid.IntRange(0, 7).Draw(t, "urgent") == 0}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			what := rapid.SampledFrom([]string{"join", "slots", "wait", "wait", "start", "start", "start", "end", "end", "change", "leave"}).Draw(t, "what")
			var s *Share
			if len(r.shares) > 0 {
				s = r.shares[rapid.IntRange(0, len(r.shares)-1).Draw(t, "who")]
			}
			switch {
			case what == "slots":
				slots = rapid.IntRange(0, 20).Draw(t, "slots")
				r.SetSlots(slots)
			case what == "join":
				n++
				r.Join(fmt.Sprint(n), draw())
			case s == nil:
			case what == "wait":
				r.Wait(s, rapid.IntRange(-min(3, s.Waiting), 9).Draw(t, "tasks"))
			case what == "start":
				if p := r.Pick(nil); p != nil && busy < slots {
					r.Start(p)
					busy++
				}
			case what == "end" && s.Running > 0:
				r.End(s)
				busy--
			case what == "change":
				r.Change(s, draw())
			case what == "leave":
				r.Leave(s)
				busy -= s.Running
			}
			p := r.Pick(nil)
			var claims []Claim
			var best *Share
			for _, u := range r.shares {
				c := u.claim()
				claims = append(claims, c)
				if u.Waiting > 0 && u.Weight > 0 && (u.Max == 0 || u.Running < u.Max) && (best == nil || u.before(best)) {
					best = u
				}
			}
			want := shares(slots, least, claims)
			for i, u := range r.Targets() {
				if u.Target != want[i] || u.at != i {
					t.Fatalf("after %s: session %s has a share of %d, want %d", what, u.Name, u.Target, want[i])
				}
			}
			if p != best {
				t.Fatalf("after %s: picked %v, want %v", what, p, best)
			}
		}
	})
}

func TestServingCostsNoMemory(t *testing.T) {
	r := NewRota(1)
	r.SetSlots(500)
	for i := range 100 {
		joined(r, fmt.Sprint(i), 1+i%9, 1000)
	}
	var running []*Share
	for range 500 {
		s := r.Pick(nil)
		r.Start(s)
		running = append(running, s)
	}
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		r.End(running[i%500])
		running[i%500] = r.Pick(nil)
		r.Start(running[i%500])
		i++
	}); n > 0 {
		t.Errorf("a task costs %v allocations", n)
	}
	if r.Targets(); r.stale {
		t.Error("shares are stale for ever")
	}
}

func BenchmarkRota(b *testing.B) {
	r := NewRota(1)
	r.SetSlots(1000)
	var running []*Share
	for i := range 100 {
		joined(r, fmt.Sprint(i), 1+i%9, 1<<40)
	}
	for range 1000 {
		running = append(running, r.Pick(nil))
		r.Start(running[len(running)-1])
	}
	for i := 0; b.Loop(); i++ {
		k := i % len(running)
		r.End(running[k])
		running[k] = r.Pick(nil)
		r.Start(running[k])
	}
}

func TestA22VictimsOfUrgentSessions(t *testing.T) {
	r := NewRota(1)
	r.SetSlots(4)
	low, high := joined(r, "low", 2, 9), joined(r, "high", 6, 9)
	for range 4 {
		r.Start(r.Pick(nil))
	}
	urgent := r.Join("urgent", Claim{Weight: 5, Urgent: true})
	r.Wait(urgent, 2)
	if n := r.Short(); n != 2 {
		t.Fatalf("%d slots are lacking", n)
	}
	now := job.Millis(1_000_000)
	ago := func(s *Share, age job.Millis) Preemptible { return Preemptible{Share: s, Since: now - age} }
	list := []Preemptible{
		ago(high, 100*job.Second), ago(high, 40*job.Second), ago(high, 20*job.Second), ago(low, 90*job.Second),
	}
	// low may keep its 1 of the 2 slots that are left, high gives up 2 of 3.
	if low.Target != 1 || high.Target != 1 {
		t.Fatalf("low has a share of %d, high of %d", low.Target, high.Target)
	}
	victims, again := Victims(list, 2, now, anyone)
	if !slices.Equal(victims, []int{1, 0}) || again != 0 {
		t.Errorf("victims %v, again %d: want the newest of those above their share that are not protected", victims, again)
	}
	list[1].Expected = 50*job.Second + 1 // not yet past 80 % of it
	if victims, _ = Victims(append(slices.Clone(list), ago(high, 200*job.Second)), 9, now, anyone); !slices.Equal(victims, []int{1, 0}) {
		t.Errorf("victims %v: high falls below its share, or who has not run for 80 %% of its time is spared", victims)
	}
	if victims, _ = Victims(list, 2, now, func(i int) bool { return i == 0 }); !slices.Equal(victims, []int{0}) {
		t.Errorf("victims %v: in the place of one no urgent task may run", victims)
	}
	list[0].Expected = 120 * job.Second // past 80 % of it
	victims, again = Victims(list, 2, now, anyone)
	if !slices.Equal(victims, []int{1}) || again != now+10*job.Second {
		t.Errorf("victims %v, again in %d", victims, again-now)
	}
	list[2].Expected = 30 * job.Second // is past 80 % when it is protected no more
	if victims, again = Victims(list, 2, now, anyone); !slices.Equal(victims, []int{1}) || again != 0 {
		t.Errorf("victims %v, again in %d", victims, again-now)
	}
	if victims, _ = Victims(list, 0, now, anyone); victims != nil {
		t.Errorf("nobody needs %v", victims)
	}
	r.Wait(low, 0)
	r.Change(low, Claim{Weight: 0}) // suspended: above its share, and the lowest
	r.Targets()
	if victims, _ = Victims(list, 1, now, anyone); !slices.Equal(victims, []int{3}) {
		t.Errorf("victims %v, want the lowest weight first", victims)
	}
}

func TestA23WhoWasPreemptedFiveTimesIsSpared(t *testing.T) {
	r := NewRota(1)
	r.SetSlots(2)
	s := joined(r, "s", 5, 9)
	r.Start(s)
	r.Start(s)
	u := r.Join("u", Claim{Weight: 5, Urgent: true})
	r.Wait(u, 1)
	r.Targets()
	now := job.Millis(1_000_000)
	list := []Preemptible{{Share: s, Since: now - 60_000}, {Share: s, Since: now - 40_000}}
	for n := range uint32(7) {
		list[1].Preempted = n
		want := 1
		if n >= PreemptMost {
			want = 0
		}
		if victims, _ := Victims(list, 1, now, anyone); !slices.Equal(victims, []int{want}) {
			t.Errorf("pre-empted %d times: victim %v, want %d", n, victims, want)
		}
	}
	u.Running, u.Target = 2, 1
	if victims, _ := Victims([]Preemptible{{Share: u, Since: 1}}, 1, now, anyone); victims != nil {
		t.Error("an urgent session is a victim")
	}
}

func anyone(int) bool { return true }
