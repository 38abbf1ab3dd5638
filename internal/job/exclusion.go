package job

// Exclusion is when a session gives an engine no more tasks because its tasks
// fail there (grid.md 9; reference gridserver.md section 6). A session without
// one excludes no engine.
type Exclusion struct {
	Failures    int     // that exclude an engine: failures_before_exclusion
	EachFailure bool    // all failures count, also several of one task; else tasks count
	TTL         Millis  // then it is tried again; 0 = not before somebody clears it
	MaxFraction float64 // of the engines that may run its tasks are excluded, never more
}

// DefaultExclusion is the exclusion of the profile modern.
func DefaultExclusion() Exclusion { return Exclusion{Failures: 3, TTL: 10 * Minute, MaxFraction: 0.5} }

// SeedExclusion is GridServer's: an engine that failed once gets nothing more,
// and nothing keeps a session from excluding all.
func SeedExclusion() Exclusion { return Exclusion{Failures: 1, EachFailure: true, MaxFraction: 1} }

// Check names everything that is wrong with the settings, each by its name on
// the wire below the given one.
func (x *Exclusion) Check(name string) error {
	var c checks
	c.whole(name+".failures_before_exclusion", x.Failures, 1, 100)
	c.span(name+".ttl_ms", x.TTL, 0)
	c.share(name+".max_fraction", x.MaxFraction)
	return c.err()
}

// Strike is what a session holds against an engine. A list of them is in the
// order of the names of the engines; it is never changed in place.
type Strike struct {
	Engine string
	Tasks  []ID   // whose failures count, at most as many as exclude
	Count  uint32 // failures since the first that counts
	Last   Millis // the latest of them
	Until  Millis // 0 = they are too few to exclude it
	Out    bool   // it is excluded: not if so many are that it must do
}

// StrikesMax is the most engines that a session remembers something against.
const StrikesMax = 10_000

// BlackHoles is when the whole grid gives an engine nothing for a while because
// it fails task after task in no time (reference section 6).
type BlackHoles struct {
	Failures    int     // in a row, each of a run that took no longer than
	Fast        Millis  // this
	Elsewhere   float64 // share of those tasks that succeeded elsewhere: then it is proven
	Suspended   Millis  // nothing for so long when it is suspected,
	Quarantined Millis  // and when it is proven; one task tries it then
	MaxFraction float64 // of all engines, never more
}

// DefaultBlackHoles are those of the specification.
func DefaultBlackHoles() BlackHoles {
	return BlackHoles{
		Failures: 5, Fast: Second, Elsewhere: 0.5,
		Suspended: 10 * Second, Quarantined: 10 * Minute, MaxFraction: 0.5,
	}
}

// Check names everything that is wrong with the settings, each by its name on
// the wire below the given one.
func (b *BlackHoles) Check(name string) error {
	var c checks
	c.whole(name+".failures", b.Failures, 1, HealthTasksMax)
	c.span(name+".fast_ms", b.Fast, 0)
	c.share(name+".elsewhere", b.Elsewhere)
	c.span(name+".suspended_ms", b.Suspended, 1)
	c.span(name+".quarantined_ms", b.Quarantined, 1)
	c.share(name+".max_fraction", b.MaxFraction)
	return c.err()
}

// HealthTasksMax is the most tasks of a row of failures that are remembered.
const HealthTasksMax = 32

// HealthState is whether an engine is taken for a black hole.
type HealthState uint8

// The states. An engine that is not well gets nothing, but for one task while
// it is probed.
const (
	HealthWell HealthState = iota
	HealthSuspended
	HealthQuarantined
	HealthProbed
	HealthStates // how many there are
)

var healthNames = [HealthStates]string{"well", "suspended", "quarantined", "probed"}

func (s HealthState) String() string { return nameOf(healthNames[:], uint8(s)) }

// Health is what is known of an engine as a possible black hole. The zero value
// is an engine that is well. It is never changed in place.
type Health struct {
	State HealthState
	Until Millis     // of suspended and quarantined
	Row   []FastFail // the latest failures, each of a fast run, without a success between
}

// FastFail is one of them.
type FastFail struct {
	Task      ID
	Elsewhere bool // it succeeded on another host since
}
