package grid

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
)

// Option is one thing a session may decide: for bodies, the configuration,
// what GET tells and the table of docs/grid.md.
type Option struct {
	Name   string
	Shape  string    // what it may hold, in words
	Values [2]string // JSON, by profile
	Help   string

	read func(*job.Queue, jsontext.Value) error // its errors say what the value must be
	show func(*job.Queue) any
}

// Options are all there are. Within a level they are read in this order, which
// is that of the documentation.
var Options = []Option{
	number("weight", "5", "5", 0, job.GridWeightMax, "share of the engines; 0 suspends the session: what runs goes on, nothing begins",
		at(func(q *job.Queue) *uint8 { return &q.Grid.Weight })),
	yesNo("urgent", "false", "false", "may take engines from sessions above their share that are not urgent",
		at(func(q *job.Queue) *bool { return &q.Grid.Urgent })),
	number("max_engines", "0", "0", 0, math.MaxInt32, "tasks that run at once; 0 = no limit",
		at(func(q *job.Queue) *int { return &q.Grid.MaxEngines })),

	span("task_max_time", "0s", "0s", 0, "longest run of one attempt, from the word `started`; 0 = no limit",
		at(func(q *job.Queue) *job.Millis { return &q.RunTimeout })),
	word("on_timeout", "retry", "retry", "what then: the engine stops, and the task is charged and begins anew; or it runs on, and a copy may overtake it",
		at(func(q *job.Queue) *job.OnTimeout { return &q.Grid.OnTimeout }), job.TimeoutRetry, job.TimeoutReschedule),
	span("poll_period", "0s", "0s", 0, "an overrun is seen at the next multiple of this; 0 = when it happens",
		at(func(q *job.Queue) *job.Millis { return &q.Grid.PollPeriod })),
	span("timeout_slack", "0s", "2s", 0, "`reprise engine` and the Go client end a run by themselves at `task_max_time`; the server ends it so much later, if it was not told",
		at(func(q *job.Queue) *job.Millis { return &q.Grid.TimeoutSlack })),
	span("affinity_wait", "10s", "10s", 0, "a task with an `affinity` tag that is the next of its tag is kept so long for engines that ran the tag; 0 = tags are not looked at",
		at(func(q *job.Queue) *job.Millis { return &q.Grid.AffinityWait })),
	span("assign_timeout", "0s", "10s", 0, "an engine that was given a task says `started` within this, or loses it without charge; 0 = no limit",
		at(func(q *job.Queue) *job.Millis { return &q.StartTimeout })),

	number("max_retries", "3", "3", 0, 1_000_000, "charged failures that are followed by another attempt",
		field[int64]{
			func(q *job.Queue) int64 { n, _ := q.Retry.Limit.Count(); return int64(n) },
			func(q *job.Queue, n int64) { q.Retry.Limit = job.LimitOf(uint32(n)) },
		}),
	word("losses", "charged", "apart", "what a lost engine costs its tasks: a retry, or a loss with a limit of its own",
		field[losses]{
			func(q *job.Queue) losses { return losses(!q.Grid.LossesCharged) },
			func(q *job.Queue, l losses) { q.Grid.LossesCharged = !bool(l) },
		}, charged, apart),
	number("max_losses", "5", "5", 1, 1_000_000, "engines in a row that a task may lose, where `losses` is apart",
		field[int64]{
			func(q *job.Queue) int64 { n, _ := q.Retry.LossLimit.Count(); return int64(n) },
			func(q *job.Queue, n int64) { q.Retry.LossLimit = job.LimitOf(uint32(n)) },
		}),
	span("retry_backoff", "0s", "1s", 0, "wait before the first retry, doubled for each one after it up to a minute, with full jitter; 0 = retries are ready at once",
		field[job.Millis]{backoffOf, setBackoff}),
	yesNo("retry_elsewhere", "false", "true", "a task that failed runs on another host next, or on another engine, if one is free there at that moment; it never waits for that",
		at(func(q *job.Queue) *bool { return &q.Grid.RetryElsewhere })),
	number("max_reschedules", "3", "3", 0, 1_000_000, "copies that may be asked for in the life of a task; then it goes on alone",
		at(func(q *job.Queue) *uint32 { return &q.Grid.MaxReschedules })),
	number("max_copies", "2", "2", 1, 16, "runs of one task side by side, the first included",
		at(func(q *job.Queue) *uint8 { return &q.Grid.MaxCopies })),
	word("copies_on", "other_engine", "other_host", "where a copy may run",
		field[copiesOn]{
			func(q *job.Queue) copiesOn { return copiesOn(!q.Grid.AnyHost) },
			func(q *job.Queue, c copiesOn) { q.Grid.AnyHost = !bool(c) },
		}, otherEngine, otherHost),
	yesNo("idempotent", "true", "true", "false = a task never runs twice at a time, so it gets no copies",
		field[bool]{
			func(q *job.Queue) bool { return !q.NonIdempotent },
			func(q *job.Queue, is bool) { q.NonIdempotent = !is },
		}),
	span("fence_wait", "0s", "30s", 0, "where `idempotent` is false: wait before the next attempt of a task whose engine was lost, or did not say itself that it stopped, so that what it does yet can end",
		at(func(q *job.Queue) *job.Millis { return &q.Grid.FenceWait })),

	option("redundancy", "a list of strategies: "+strings.Join(strategies(), ", "), [2]string{`[]`, `["median"]`},
		"when a task that takes long gets a copy; any of them may say so; [] = never; see [redundancy.md](redundancy.md)",
		ofCopies(func(r *job.Redundancy) *job.RedundancySet { return &r.Strategies }), readStrategies, showStrategies),
	yesNo("copies_idle_only", "false", "true", "copies only on engines for which no first attempt waits",
		field[bool]{
			func(q *job.Queue) bool { return !copiesOf(q).AlsoBusy },
			func(q *job.Queue, is bool) { changeCopies(q, func(r *job.Redundancy) { r.AlsoBusy = !is }) },
		}),
	fraction("copy_budget", "1", "0.05", 0, 1, "time for copies, of the time of useful runs; 1 = as much again",
		ofCopies(func(r *job.Redundancy) *float64 { return &r.SecondsShare })),
	span("copy_budget_burst", "1m", "1m", 0, "and so much more time for copies",
		ofCopies(func(r *job.Redundancy) *job.Millis { return &r.SecondsBurst })),
	fraction("copies_running", "1", "0.1", 0, 1, "copies at once, of all that runs; one always may",
		ofCopies(func(r *job.Redundancy) *float64 { return &r.RunningShare })),
	number("min_samples", "5", "5", 1, job.RedundancySamples, "tasks that must have finished before their times say something",
		ofCopies(func(r *job.Redundancy) *int { return &r.MinSamples })),
	fraction("tail_done", "0.9", "0.9", 0, 1, "tail: share of the tasks that is done", ofCopies(func(r *job.Redundancy) *float64 { return &r.TailDone })),
	fraction("mean_factor", "3", "3", 1, 1000, "mean: times the mean", ofCopies(func(r *job.Redundancy) *float64 { return &r.MeanFactor })),
	fraction("stddev_factor", "3", "3", 0, 1000, "stddev: standard deviations above the mean", ofCopies(func(r *job.Redundancy) *float64 { return &r.Deviations })),
	fraction("median_done", "0.75", "0.75", 0, 1, "median: share of the tasks that is done", ofCopies(func(r *job.Redundancy) *float64 { return &r.MedianDone })),
	fraction("median_factor", "2", "2", 1, 1000, "median: times the median", ofCopies(func(r *job.Redundancy) *float64 { return &r.MedianFactor })),
	span("median_age", "1s", "1s", 0, "median: but never sooner", ofCopies(func(r *job.Redundancy) *job.Millis { return &r.MedianAge })),
	fraction("left_factor", "2", "2", 1, 1000, "for time_left: times what a new run takes", ofCopies(func(r *job.Redundancy) *float64 { return &r.LeftFactor })),
	fraction("hedge_quantile", "0.95", "0.95", 0, 1, "hedge: of the runs of the type in all sessions", ofCopies(func(r *job.Redundancy) *float64 { return &r.HedgeQuantile })),
	number("hedge_samples", "100", "100", 1, job.RedundancySamples, "hedge and clone: runs of the type that must be known", ofCopies(func(r *job.Redundancy) *int { return &r.HedgeSamples })),
	span("hedge_half_life", "1d", "1d", job.Minute, "hedge: a run of that age counts half", ofCopies(func(r *job.Redundancy) *job.Millis { return &r.HedgeHalfLife })),
	number("clone_tasks", "10", "10", 0, 10_000, "clone: of sessions with at most so many tasks", ofCopies(func(r *job.Redundancy) *int { return &r.CloneTasks })),
	fraction("clone_risk", "0.05", "0.05", 0.001, 0.999, "clone: chance that remains that the session waits for a slow run", ofCopies(func(r *job.Redundancy) *float64 { return &r.CloneRisk })),
	number("clone_copies", "3", "3", 1, 16, "clone: runs of a task at most; `max_copies` holds, too", ofCopies(func(r *job.Redundancy) *int { return &r.CloneCopies })),

	number("failures_before_exclusion", "0", "3", 0, 100, "failed tasks after which an engine gets no more of this session; 0 = never",
		ofExclusion(func(x *job.Exclusion) *int { return &x.Failures })),
	yesNo("exclusion_each_failure", "true", "false", "every failure counts, also several of one task",
		ofExclusion(func(x *job.Exclusion) *bool { return &x.EachFailure })),
	span("exclusion_time", "0s", "10m", 0, "how long it gets none; 0 = until the session is over",
		ofExclusion(func(x *job.Exclusion) *job.Millis { return &x.TTL })),
	fraction("exclusion_share", "1", "0.5", 0, 1, "of the engines that may run its tasks, at most so many are excluded",
		ofExclusion(func(x *job.Exclusion) *float64 { return &x.MaxFraction })),

	word("front_order", "by_seq", "by_seq", "order of several tasks at the front: as they were submitted, or the latest first",
		at(func(q *job.Queue) *job.FrontOrder { return &q.FrontOrder }), job.FrontBySeq, job.FrontLIFO),
	yesNo("reschedule_first", "false", "false", "tasks given back and copies go to the front, before new tasks",
		field[bool]{func(q *job.Queue) bool { return q.Grid.CopyPlace == job.PlaceFront }, setRescheduleFirst}),
	word("evicted_place", "back", "keep", "where a task goes that its engine gave back: behind all, where it stood, or before all",
		at(func(q *job.Queue) *job.Place { return &q.Grid.EvictedPlace }), job.PlaceBack, job.PlaceKeep, job.PlaceFront),
	word("lost_place", "front", "front", "where a task goes whose engine was lost: before all, where it stood, or behind all",
		field[job.Place]{func(q *job.Queue) job.Place { return cmp.Or(q.Grid.LostPlace, job.PlaceFront) }, func(q *job.Queue, p job.Place) { q.Grid.LostPlace = p }},
		job.PlaceFront, job.PlaceKeep, job.PlaceBack),

	word("collection", "immediately", "immediately", "results are handed out as tasks finish, once the session is closed, later by any client and then kept, or never",
		field[job.Collection]{func(q *job.Queue) job.Collection { return q.Grid.Collection }, setCollection},
		job.CollectImmediately, job.CollectAfterSubmit, job.CollectLater, job.CollectNever),
	word("auto_cancel", "never", "never", "which failed task cancels the whole session: none, one whose error type is `LoadError`, or any",
		at(func(q *job.Queue) *job.AutoCancel { return &q.Grid.AutoCancel }), job.AutoCancelNever, job.AutoCancelLibload, job.AutoCancelAlways),
	span("keep", "1d", "1d", 1, "how long a session that is over is kept, with results that were not collected",
		at(func(q *job.Queue) *job.Millis { return &q.Grid.Retain })),
	span("client_timeout", "0s", "0s", 0, "a session whose client is silent for so long is cancelled, unless all is submitted and `collection` is later or never; 0 = it goes on without a client",
		at(func(q *job.Queue) *job.Millis { return &q.Grid.ClientTimeout })),
}

const gridServer = "GridServer"

// setCollection also decides how long completed tasks stay: those that are not
// collected leave at once, the others with their session at the latest.
func setCollection(q *job.Queue, c job.Collection) {
	if q.Grid.Collection, q.RetainDone = c, job.MaxMillis; c == job.CollectNever {
		q.RetainDone = 0
	}
}

// backoffMost bounds waits before retries (reference section 2).
const backoffMost = job.Minute

func setBackoff(q *job.Queue, first job.Millis) {
	if first == 0 {
		q.Retry.Curve = &job.Curve{Kind: job.CurveImmediate}
		return
	}
	q.Retry.Curve = &job.Curve{
		Kind: job.CurveExponential, Unit: first, Factor: 2, Cap: max(first, backoffMost), Jitter: job.Jitter{Kind: job.JitterFull},
	}
}

func backoffOf(q *job.Queue) job.Millis {
	if c := q.Retry.Curve; c != nil && c.Kind == job.CurveExponential {
		return c.Unit
	}
	return 0
}

// setRescheduleFirst is about both kinds of reschedule; evicted_place may say
// something else of those that were given back.
func setRescheduleFirst(q *job.Queue, first bool) {
	g := q.Grid
	switch {
	case first:
		g.CopyPlace, g.EvictedPlace = job.PlaceFront, job.PlaceFront
	case g.CopyPlace == job.PlaceFront:
		g.CopyPlace, g.EvictedPlace = job.PlaceBack, job.PlaceBack
		if g.Profile == job.ProfileModern {
			g.EvictedPlace = job.PlaceKeep
		}
	default:
		g.CopyPlace = job.PlaceBack
	}
}

// losses and copiesOn are the words of settings that the core keeps as a bool.
type (
	losses   bool
	copiesOn bool
)

const (
	charged, apart         = losses(false), losses(true)
	otherEngine, otherHost = copiesOn(false), copiesOn(true)
)

func (l losses) String() string {
	if l == apart {
		return "apart"
	}
	return "charged"
}

func (c copiesOn) String() string {
	if c == otherHost {
		return "other_host"
	}
	return "other_engine"
}

// optionOf finds an option by its name.
func optionOf(name string) *Option {
	if at := slices.IndexFunc(Options, func(o Option) bool { return o.Name == name }); at >= 0 {
		return &Options[at]
	}
	return nil
}

// field is where the value of an option is kept: in the settings of the
// session's queue. set never changes in place what queues share, but for Grid.
type field[T any] struct {
	get func(*job.Queue) T
	set func(*job.Queue, T)
}

// at is a field that is a variable.
func at[T any](p func(*job.Queue) *T) field[T] {
	return field[T]{func(q *job.Queue) T { return *p(q) }, func(q *job.Queue, v T) { *p(q) = v }}
}

// option ties a way to read a value to where it is kept. Its errors say what
// the value must be.
func option[T any](name, shape string, values [2]string, help string, f field[T], read func(jsontext.Value) (T, error), show func(T) any) Option {
	return Option{
		Name: name, Shape: shape, Values: values, Help: help,
		read: func(q *job.Queue, v jsontext.Value) error {
			value, err := read(v)
			if err == nil {
				f.set(q, value)
			}
			return err
		},
		show: func(q *job.Queue) any { return show(f.get(q)) },
	}
}

func itself[T any](v T) any { return v }

func number[T ~int | ~int64 | ~uint8 | ~uint32](name, seed, modern string, least, most int64, help string, f field[T]) Option {
	return option(name, wholeShape(least, most), [2]string{seed, modern}, help, f,
		func(v jsontext.Value) (T, error) { n, err := readWhole(v, least, most); return T(n), err }, itself)
}

func wholeShape(least, most int64) string {
	if most >= math.MaxInt32 {
		return fmt.Sprintf("a whole number, at least %d", least)
	}
	return fmt.Sprintf("a whole number from %d to %d", least, most)
}

func readWhole(v jsontext.Value, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("must be %s", wholeShape(least, most))
	}
	return n, nil
}

func fraction(name, seed, modern string, least, most float64, help string, f field[float64]) Option {
	shape := fmt.Sprintf("a number from %v to %v", least, most)
	return option(name, shape, [2]string{seed, modern}, help, f, func(v jsontext.Value) (float64, error) {
		n, err := strconv.ParseFloat(string(v), 64)
		if err != nil || !(n >= least && n <= most) {
			return 0, fmt.Errorf("must be %s", shape)
		}
		return n, nil
	}, itself)
}

func yesNo(name, seed, modern, help string, f field[bool]) Option {
	return option(name, "true or false", [2]string{seed, modern}, help, f, func(v jsontext.Value) (bool, error) {
		if v.Kind() != 't' && v.Kind() != 'f' {
			return false, errors.New("must be true or false")
		}
		return v.Kind() == 't', nil
	}, itself)
}

func span(name, seed, modern string, least job.Millis, help string, f field[job.Millis]) Option {
	values := [2]string{strconv.Quote(seed), strconv.Quote(modern)}
	return option(name, "a span of time", values, help, f, func(v jsontext.Value) (job.Millis, error) {
		d, err := readSpan(v)
		if err == nil && d < least {
			err = fmt.Errorf("must be at least %s", least)
		}
		return d, err
	}, func(d job.Millis) any { return d.String() })
}

// spanMost bounds every span of time of an option.
const spanMost = 30 * job.Day

// readSpan reads a span as configuration has it. A bare number is refused, as
// GridServer counts some in seconds and others in milliseconds.
func readSpan(v jsontext.Value) (job.Millis, error) {
	text := string(v)
	if v.Kind() == '"' {
		if err := json.Unmarshal(v, &text); err != nil {
			return 0, err
		}
	}
	d, err := job.ParseSpan(text)
	if err == nil && d > spanMost {
		err = fmt.Errorf("must be at most %s", spanMost)
	}
	return d, err
}

func word[T interface {
	comparable
	fmt.Stringer
}](name, seed, modern, help string, f field[T], list ...T) Option {
	names := make([]string, len(list))
	for i, one := range list {
		names[i] = one.String()
	}
	shape := "one of " + strings.Join(names, ", ")
	values := [2]string{strconv.Quote(seed), strconv.Quote(modern)}
	return option(name, shape, values, help, f, func(v jsontext.Value) (one T, err error) {
		var text string
		_ = json.Unmarshal(v, &text) // what is no text is none of them
		if i := slices.Index(names, text); i >= 0 {
			return list[i], nil
		}
		return one, fmt.Errorf("must be %s%s", shape, spell.Hint(text, names))
	}, func(one T) any { return one.String() })
}
