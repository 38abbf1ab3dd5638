package grid

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
)

// Profile is a set of values for the options that nobody chose.
type Profile uint8

// The profiles.
const (
	Seed   Profile = iota // what GridServer's documentation says
	Modern                // what we recommend
	profiles
)

func (p Profile) String() string { return [...]string{"seed", "modern"}[p] }

// ParseProfile reads the name of a profile.
func ParseProfile(s string) (Profile, error) {
	for p := range profiles {
		if p.String() == s {
			return p, nil
		}
	}
	return Seed, refuse("profile", "profile must be seed or modern, not %s", quote(s))
}

// Option is one thing a session may decide: for bodies, the configuration,
// what GET tells and the table of docs/grid.md.
type Option struct {
	Name   string
	Shape  string           // what it may hold, in words
	Values [profiles]string // JSON, by profile
	Help   string

	read func(*Settings, jsontext.Value) error // its errors say what the value must be
	show func(*Settings) any
}

// spanMax bounds every span of time of an option.
const spanMax = 365 * job.Day

// Options are all there are, in the order in which documentation lists them.
var Options = []Option{
	number("weight", "5", "5", 0, 9, "share of the engines; 0 suspends the session: what runs goes on, nothing begins",
		func(s *Settings) *int64 { return &s.Weight }),
	yesNo("urgent", "false", "false", "may take engines from sessions above their share that are not urgent",
		func(s *Settings) *bool { return &s.Urgent }),
	number("max_engines", "0", "0", 0, math.MaxInt32, "engines that work for it at once; 0 = no limit",
		func(s *Settings) *int64 { return &s.MaxEngines }),

	span("task_max_time", "0s", "0s", "longest run of one attempt, from the word `started`; 0 = no limit (INVOCATION_MAX_TIME)",
		func(s *Settings) *job.Millis { return &s.TaskMaxTime }),
	word("on_timeout", "retry", "retry", "what then: the engine stops and the task is charged and begins anew, or it runs on beside a copy",
		func(s *Settings) *OnTimeout { return &s.OnTimeout }, TimeoutRetry, TimeoutReschedule),
	span("poll_period", "0s", "0s", "an overrun is seen at the next of these steps; 0 = when it happens",
		func(s *Settings) *job.Millis { return &s.PollPeriod }),
	span("assign_timeout", "0s", "10s", "an engine that was given a task says `started` within this, or loses it without charge; 0 = no limit",
		func(s *Settings) *job.Millis { return &s.AssignTime }),

	number("max_retries", "3", "3", 0, math.MaxInt32, "failed attempts that are followed by another one (MAX_TASK_RETRIES)",
		func(s *Settings) *int64 { return &s.MaxRetries }),
	word("losses", "charged", "apart", "what a lost engine costs its tasks: a retry, or a loss with a limit of its own",
		func(s *Settings) *Losses { return &s.Losses }, LossesCharged, LossesApart),
	number("max_losses", "5", "5", 1, math.MaxInt32, "engines in a row that a task may lose, where `losses` is apart",
		func(s *Settings) *int64 { return &s.MaxLosses }),
	number("max_reschedules", "3", "3", 0, math.MaxInt32, "copies that may be asked for; then the task goes on alone (MAX_TASK_RESCHEDULES)",
		func(s *Settings) *int64 { return &s.MaxReschedules }),
	span("retry_backoff", "0s", "1s", "wait before the first retry, doubled for each after it, with full jitter; 0 = retries begin at once",
		func(s *Settings) *job.Millis { return &s.RetryBackoff }),
	span("retry_backoff_cap", "1m", "1m", "longest wait before a retry",
		func(s *Settings) *job.Millis { return &s.RetryCap }),
	word("front_order", "by_seq", "by_seq", "order of several tasks at the front: as they were submitted, or the latest first",
		func(s *Settings) *job.FrontOrder { return &s.FrontOrder }, job.FrontBySeq, job.FrontLIFO),

	yesNo("reschedule_first", "false", "false", "tasks given back and copies go to the front, before new tasks",
		func(s *Settings) *bool { return &s.RescheduleFirst }),
	word("evicted_place", "back", "keep", "where a task goes that its engine gave back: to the back, or to where it stood",
		func(s *Settings) *EvictedPlace { return &s.EvictedPlace }, EvictedBack, EvictedKeep),

	wordList("redundancy", `[]`, `["median"]`, "strategies that ask for a copy of a task that takes long; any of them may; [] = none",
		func(s *Settings) *[]Strategy { return &s.Strategies }, Tail, Mean, StdDev, Median, TimeLeft, Hedge, Clone),
	number("max_copies", "2", "2", 1, 8, "runs of one task side by side, the first included",
		func(s *Settings) *int64 { return &s.MaxCopies }),
	word("copies_on", "other_engine", "other_host", "where a copy may run",
		func(s *Settings) *CopiesOn { return &s.CopiesOn }, OtherEngine, OtherHost),
	yesNo("copies_idle_only", "false", "true", "copies only on engines for which no first attempt of any session waits",
		func(s *Settings) *bool { return &s.IdleOnly }),
	share("copy_budget", "0", "0.05", "seconds of copies for each second of useful work; 0 = no limit",
		func(s *Settings) *float64 { return &s.CopyBudget }),
	number("min_samples", "5", "5", 1, 1_000_000, "tasks that must have finished before a strategy looks at their times",
		func(s *Settings) *int64 { return &s.MinSamples }),
	yesNo("idempotent", "true", "true", "false = a task never runs twice at a time, so it gets no copies",
		func(s *Settings) *bool { return &s.Idempotent }),

	number("failures_before_exclusion", "0", "3", 0, math.MaxInt32, "failed tasks after which an engine gets no more of this session; 0 = never",
		func(s *Settings) *int64 { return &s.ExclusionAfter }),
	span("exclusion_time", "0s", "10m", "how long it gets none; 0 = until it is cleared",
		func(s *Settings) *job.Millis { return &s.ExclusionFor }),

	word("collection", "immediately", "immediately", "when results are handed out: as tasks finish, once the session is closed, later by any client, or never",
		func(s *Settings) *Collection { return &s.Collection }, Immediately, AfterSubmit, Later, Never),
	span("client_timeout", "0s", "0s", "a session whose client is silent so long is cancelled, unless it is closed and collected later or never; 0 = never",
		func(s *Settings) *job.Millis { return &s.ClientTimeout }),
	word("auto_cancel", "never", "never", "which failed task cancels the session: none, one whose error type is `load`, or any",
		func(s *Settings) *AutoCancel { return &s.AutoCancel }, CancelNever, CancelOnLoad, CancelAlways),
	span("stop_grace", "5s", "5s", "time to end by itself for an attempt that does not count any more, before it is killed",
		func(s *Settings) *job.Millis { return &s.StopGrace }),
}

// optionOf finds an option by its name.
func optionOf(name string) *Option {
	if at := slices.IndexFunc(Options, func(o Option) bool { return o.Name == name }); at >= 0 {
		return &Options[at]
	}
	return nil
}

// texts are a value of each profile; the table is checked by its test.
func texts(seed, modern string) [profiles]string { return [profiles]string{seed, modern} }

func quoted(s string) string { return strconv.Quote(s) }

func number(name, seed, modern string, least, most int64, help string, at func(*Settings) *int64) Option {
	return Option{name, numberShape(least, most), texts(seed, modern), help,
		func(s *Settings, v jsontext.Value) error { return readNumber(v, least, most, at(s)) },
		func(s *Settings) any { return *at(s) },
	}
}

func numberShape(least, most int64) string {
	return fmt.Sprintf("a whole number from %d to %d", least, most)
}

func readNumber(v jsontext.Value, least, most int64, into *int64) error {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < least || n > most {
		return fmt.Errorf("must be %s", numberShape(least, most))
	}
	*into = n
	return nil
}

func share(name, seed, modern, help string, at func(*Settings) *float64) Option {
	return Option{name, "a number from 0 to 1", texts(seed, modern), help,
		func(s *Settings, v jsontext.Value) error {
			f, err := strconv.ParseFloat(string(v), 64)
			if err != nil || !(f >= 0 && f <= 1) {
				return fmt.Errorf("must be a number from 0 to 1")
			}
			*at(s) = f
			return nil
		},
		func(s *Settings) any { return *at(s) },
	}
}

func yesNo(name, seed, modern, help string, at func(*Settings) *bool) Option {
	return Option{name, "true or false", texts(seed, modern), help,
		func(s *Settings, v jsontext.Value) error {
			if v.Kind() != 't' && v.Kind() != 'f' {
				return fmt.Errorf("must be true or false")
			}
			*at(s) = v.Kind() == 't'
			return nil
		},
		func(s *Settings) any { return *at(s) },
	}
}

func span(name, seed, modern, help string, at func(*Settings) *job.Millis) Option {
	return Option{name, "a span of time", texts(quoted(seed), quoted(modern)), help,
		func(s *Settings, v jsontext.Value) error { return readSpan(v, at(s)) },
		func(s *Settings) any { return at(s).String() },
	}
}

// readSpan reads a span as configuration has it, or a number of milliseconds.
func readSpan(v jsontext.Value, into *job.Millis) error {
	text := string(v)
	if v.Kind() == '"' {
		if err := json.Unmarshal(v, &text); err != nil {
			return err
		}
	}
	d, err := job.ParseDuration(text)
	if err == nil && d > spanMax {
		err = fmt.Errorf("must be at most %s", spanMax)
	}
	if err == nil {
		*into = d
	}
	return err
}

type named interface {
	comparable
	fmt.Stringer
}

// names lists what words there are.
func names[T named](list []T) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return strings.Join(out, ", ")
}

// choose finds a value by its word, in JSON.
func choose[T named](v jsontext.Value, list []T) (T, bool) {
	var text string
	if json.Unmarshal(v, &text) == nil {
		for _, one := range list {
			if one.String() == text {
				return one, true
			}
		}
	}
	var none T
	return none, false
}

func word[T named](name, seed, modern, help string, at func(*Settings) *T, list ...T) Option {
	shape := "one of " + names(list)
	return Option{name, shape, texts(quoted(seed), quoted(modern)), help,
		func(s *Settings, v jsontext.Value) error {
			one, ok := choose(v, list)
			if !ok {
				return fmt.Errorf("must be %s", shape)
			}
			*at(s) = one
			return nil
		},
		func(s *Settings) any { return (*at(s)).String() },
	}
}

func wordList[T named](name, seed, modern, help string, at func(*Settings) *[]T, list ...T) Option {
	shape := "a list of " + names(list)
	return Option{name, shape, texts(seed, modern), help,
		func(s *Settings, v jsontext.Value) error {
			var given []jsontext.Value
			if err := json.Unmarshal(v, &given); err != nil || v.Kind() != '[' {
				return fmt.Errorf("must be %s", shape)
			}
			var out []T
			for _, one := range given {
				got, ok := choose(one, list)
				if !ok {
					return fmt.Errorf("must be %s", shape)
				}
				if slices.Contains(out, got) {
					return fmt.Errorf("must not have %s twice", got)
				}
				out = append(out, got)
			}
			*at(s) = out
			return nil
		},
		func(s *Settings) any {
			out := []string{}
			for _, v := range *at(s) {
				out = append(out, v.String())
			}
			return out
		},
	}
}
