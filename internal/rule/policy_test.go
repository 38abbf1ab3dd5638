package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// parts set one field of a policy each, to a number that tells them apart.
var parts = map[string]struct {
	set  func(r *job.Retry, n uint32)
	has  func(r job.Retry, n uint32) bool
	from func(Origins) Source
}{
	"limit": {
		func(r *job.Retry, n uint32) { r.Limit = job.LimitOf(n) },
		func(r job.Retry, n uint32) bool { return r.Limit == job.LimitOf(n) },
		func(o Origins) Source { return o.Limit },
	},
	"max_age": {
		func(r *job.Retry, n uint32) { r.MaxAge = job.Millis(n) },
		func(r job.Retry, n uint32) bool { return r.MaxAge == job.Millis(n) },
		func(o Origins) Source { return o.MaxAge },
	},
	"place": {
		func(r *job.Retry, n uint32) { r.Place = job.Place(n%3 + 1) },
		func(r job.Retry, n uint32) bool { return r.Place == job.Place(n%3+1) },
		func(o Origins) Source { return o.Place },
	},
	"curve": {
		func(r *job.Retry, n uint32) { r.Curve = wait(job.Millis(n)) },
		func(r job.Retry, n uint32) bool { return r.Curve.Delay == job.Millis(n) },
		func(o Origins) Source { return o.Curve },
	},
	"rules": {
		func(r *job.Retry, n uint32) { r.Rules = &job.Rules{{Do: job.DoHold, Delay: job.Millis(n)}} },
		func(r job.Retry, n uint32) bool { return len(*r.Rules) == 1 && (*r.Rules)[0].Delay == job.Millis(n) },
		func(o Origins) Source { return o.Rules },
	},
	"loss_limit": {
		func(r *job.Retry, n uint32) { r.LossLimit = job.LimitOf(n) },
		func(r job.Retry, n uint32) bool { return r.LossLimit == job.LimitOf(n) },
		func(o Origins) Source { return o.LossLimit },
	},
}

func TestEachPartOfAPolicyIsThatOfTheMostSpecificWhoSaysIt(t *testing.T) { // retry.md section 1
	for name, part := range parts {
		for who := uint32(1); who < 1<<sources; who++ { // every choice of those who say it
			server := DefaultServer()
			q, j := job.NewQueue("q"), &job.Job{Type: "t", Door: job.DoorGrid}
			said := [sources]*job.Retry{{}, {}, &q.Retry, {}, &server.Retry}
			j.Retry, server.Doors[job.DoorGrid] = said[FromJob], said[FromDoor]
			server.Types = map[string]*job.Retry{"t": said[FromType]}
			most := FromServer
			for source := FromServer; source <= FromServer; source-- {
				if who>>source&1 == 1 {
					part.set(said[source], 100+uint32(source))
					most = source
				}
			}
			e := EffectivePolicy(j, q, &server)
			if got := part.from(e.From); got != most || who>>most&1 == 1 && !part.has(e.Retry, 100+uint32(most)) {
				t.Errorf("%s said by %05b: %s decides, and it is %+v", name, who, got, e.Retry)
			}
			if p := policy(View{Queue: q, Server: &server}, j); who>>most&1 == 1 && !part.has(p, 100+uint32(most)) {
				t.Errorf("%s said by %05b: a failure is decided by %+v", name, who, p)
			}
		}
	}
}

func TestTypesAndDoorsAreTheJobsOwn(t *testing.T) {
	for name, x := range map[string]struct {
		kind string
		door job.Door
		want string
	}{
		"its type":                  {"t", job.DoorGrid, "dead exhausted attempts 1"},
		"another type":              {"u", job.DoorGrid, "scheduled due 7s attempts 1"},
		"another type, another way": {"u", job.DoorJobs, "scheduled due 15s attempts 1"},
	} {
		w := newWorld(t)
		w.server.Types = map[string]*job.Retry{"t": {Limit: job.LimitOf(0)}}
		w.server.Doors[job.DoorGrid] = &job.Retry{Curve: wait(7 * job.Second)}
		w.put("a", func(j *job.Job) { j.Type, j.Door = x.kind, x.door })
		w.fail("a", w.take("a", "x"))
		if got := w.tell("a"); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

func TestALossLimitMayBeThatOfTheType(t *testing.T) { // core.md section 5
	w := newWorld(t)
	w.server.Types = map[string]*job.Retry{"t": {LossLimit: job.LimitOf(1)}}
	w.put("a")
	w.take("a", "x")
	w.lose("a", "x", job.ByLapse)
	w.expect("a", "dead lost losses 1 alone")
}

func TestNothingInAnEffectivePolicyIsUnset(t *testing.T) {
	server := DefaultServer()
	e := EffectivePolicy(&job.Job{}, job.NewQueue("q"), &server)
	want := DefaultServer().Retry
	if r := e.Retry; r.Limit != want.Limit || r.MaxAge != job.MaxMillis || r.Place != job.PlaceKeep || r.Curve == nil ||
		r.Rules == nil || len(*r.Rules) != 0 || r.LossLimit != want.LossLimit {
		t.Errorf("%+v", r)
	}
	if e.From != (Origins{FromServer, FromServer, FromServer, FromServer, FromServer, FromServer}) {
		t.Errorf("%+v", e.From)
	}
}

func TestAnImmediateCurveBringsItsPlace(t *testing.T) { // retry.md section 1, kind immediate
	immediate := &job.Curve{Kind: job.CurveImmediate}
	for name, x := range map[string]struct {
		own   job.Retry
		queue job.Retry
		place job.Place
		from  Source
	}{
		"of the queue":              {job.Retry{}, job.Retry{Curve: immediate}, job.PlaceFront, FromQueue},
		"of the job":                {job.Retry{Curve: immediate}, job.Retry{}, job.PlaceFront, FromJob},
		"a place that was asked":    {job.Retry{Curve: immediate}, job.Retry{Place: job.PlaceBack}, job.PlaceBack, FromQueue},
		"another curve over it":     {job.Retry{Curve: wait(1)}, job.Retry{Curve: immediate}, job.PlaceKeep, FromServer},
		"a wider place, same voice": {job.Retry{Curve: immediate, Place: job.PlaceKeep}, job.Retry{}, job.PlaceKeep, FromJob},
	} {
		server := DefaultServer()
		q := job.NewQueue("q")
		q.Retry = x.queue
		if e := EffectivePolicy(&job.Job{Retry: &x.own}, q, &server); e.Retry.Place != x.place || e.From.Place != x.from {
			t.Errorf("%s: %s from %s", name, e.Retry.Place, e.From.Place)
		}
	}
}
