package rule

import "github.com/reprisehq/reprise/internal/job"

// Source is who says a part of a job's retry policy.
type Source uint8

// The sources, the most specific first (retry.md section 1).
const (
	FromJob Source = iota
	FromType
	FromQueue
	FromDoor
	FromServer
	sources // how many there are
)

func (s Source) String() string { return [...]string{"job", "type", "queue", "door", "server"}[s] }

// layers are what the sources say about a job; nil is nothing.
type layers [sources]*job.Retry

func layersOf(j *job.Job, q *job.Queue, s *Server) layers {
	return layers{
		FromJob: j.Retry, FromType: s.Types[j.Type], FromQueue: &q.Retry, FromDoor: s.Doors[j.Door], FromServer: &s.Retry,
	}
}

// merged lays them over each other, the most specific first.
func (l *layers) merged() (p job.Retry) {
	for _, said := range l {
		if said != nil {
			p = p.Over(*said)
		}
	}
	return p
}

// first is the most specific source that says something.
func (l *layers) first(says func(*job.Retry) bool) Source {
	for source, said := range l {
		if said != nil && says(said) {
			return Source(source)
		}
	}
	return FromServer
}

func saysPlace(r *job.Retry) bool { return r.Place != job.PlaceUnset }

// place is where a retry by the policy p stands. The default of an immediate
// curve, which is the front, goes before that of the server.
func (l *layers) place(p *job.Retry) (place job.Place, bySomeCurve bool) {
	if l.first(saysPlace) == FromServer && p.Curve != nil && p.Curve.Kind == job.CurveImmediate {
		return job.PlaceFront, true
	}
	return p.Place, false
}

// policy is what the sources say together.
func policy(v View, j *job.Job) job.Retry {
	l := layersOf(j, v.Queue, v.Server)
	return l.merged()
}

func lossLimit(v View, j *job.Job) uint32 {
	p := policy(v, j)
	return p.LossLimitValue()
}

// Effective is the whole policy of a job, in which nothing is unset, and who
// says each part of it.
type Effective struct {
	Retry job.Retry
	From  Origins
}

// Origins are the sources of the parts of a policy.
type Origins struct{ Limit, MaxAge, Place, Curve, Rules, LossLimit Source }

// EffectivePolicy resolves the policy of a job as its queue and server are now.
func EffectivePolicy(j *job.Job, q *job.Queue, s *Server) Effective {
	l := layersOf(j, q, s)
	e := Effective{
		Retry: l.merged(),
		From: Origins{
			Limit:     l.first(func(r *job.Retry) bool { return r.Limit.IsSet() }),
			MaxAge:    l.first(func(r *job.Retry) bool { return r.MaxAge != 0 }),
			Place:     l.first(saysPlace),
			Curve:     l.first(func(r *job.Retry) bool { return r.Curve != nil }),
			Rules:     l.first(func(r *job.Retry) bool { return r.Rules != nil }),
			LossLimit: l.first(func(r *job.Retry) bool { return r.LossLimit.IsSet() }),
		},
	}
	byCurve := false
	if e.Retry.Place, byCurve = l.place(&e.Retry); byCurve {
		e.From.Place = e.From.Curve
	}
	if e.Retry.MaxAge == 0 {
		e.Retry.MaxAge = job.MaxMillis
	}
	if e.Retry.Rules == nil {
		e.Retry.Rules = &job.Rules{}
	}
	return e
}
