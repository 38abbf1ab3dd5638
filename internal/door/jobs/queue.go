package jobs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/notation"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/internal/strict"
)

// QueueSetting is one thing a person can decide about a queue. The API, the
// configuration file, `reprise queue set`, the audit log and docs/config.md
// all go by the list QueueSettings, so a setting is added there.
type QueueSetting struct {
	Name string // in the file and for the command
	Wire string // in the API, where a span says its unit: run_timeout_ms
	Kind string // what it may be, in a word
	Help string

	// Word is what a person writes as one value, as the API has it.
	Word func(text string) (jsontext.Value, error)
	// Read reads a value as the API has it over what q has; null is the default. Its
	// error joins one *job.Error for each field that is wrong.
	Read func(q *job.Queue, v jsontext.Value) error
	// Show writes the value for people; "" = there is none.
	Show func(q *job.Queue) string

	tell func(q *job.Queue) any // for the API; nil = it is left out
}

// Set reads what a person writes as one value.
func (s *QueueSetting) Set(q *job.Queue, text string) error {
	value, err := s.Word(text)
	if err != nil {
		return err
	}
	return s.Read(q, value)
}

// QueueSettings are all there are, in the order of the documentation.
var QueueSettings = []QueueSetting{
	yesNoSetting("paused", "whether nothing is given out", func(q *job.Queue) *bool { return &q.Paused }),
	wordSetting("order", "how the members of a group follow each other: `start` = they start in sequence, `strict` = one at a time, the head blocks its group",
		notation.Enum(job.OrderNone, job.OrderStart, job.OrderStrict), func(q *job.Queue) *job.Order { return &q.Order }),
	numberSetting("concurrency", "jobs of a group that run at once; 0 = no limit. With order `strict` it is 1, and more is refused",
		0, math.MaxInt32, func(q *job.Queue) *int { return &q.Concurrency }),
	wordSetting("on_dead", "what a group does when its head dies: `skip` = go on, `block` = wait for a person, `park` = move aside with all later members",
		notation.Enum(job.DeadSkip, job.DeadBlock, job.DeadPark), func(q *job.Queue) *job.OnDead { return &q.OnDead }),
	wordSetting("front_order", "how jobs put at the front stand to each other: in the order they first came, or the last one first",
		notation.Enum(job.FrontBySeq, job.FrontLIFO), func(q *job.Queue) *job.FrontOrder { return &q.FrontOrder }),
	wordSetting("late_ok", "whether a success counts that comes after its lease ended, while the job is not finished",
		notation.OneOf(func(never bool) string { return map[bool]string{false: "until_terminal", true: "never"}[never] }, false, true),
		func(q *job.Queue) *bool { return &q.LateOKNever }),
	yesNoSetting("require_token", "whether a job can be settled only with the token of its lease", func(q *job.Queue) *bool { return &q.RequireToken }),
	yesNoSetting("non_idempotent", "whether a take is on disk before it is answered, so that a power cut does not run a job twice",
		func(q *job.Queue) *bool { return &q.NonIdempotent }),
	numberSetting("max_jobs", "unfinished jobs; 0 = no limit", 0, 1<<53, func(q *job.Queue) *int64 { return &q.MaxJobs }),
	scalarSetting("max_bytes", "", "payload bytes of unfinished jobs; 0 = no limit", notation.Size(0, notation.BytesMost),
		readWhole[int64](0, notation.BytesMost), itself, func(q *job.Queue) *int64 { return &q.MaxBytes }),
	wordSetting("on_full", "what a full queue does: `reject` the newcomer with 429, or `drop_oldest`, which is lost and counted",
		notation.Enum(job.FullReject, job.FullDropOldest), func(q *job.Queue) *job.OnFull { return &q.OnFull }),
	spanSetting("run_timeout", "how long one attempt may run; 0 = for ever", func(q *job.Queue) *job.Millis { return &q.RunTimeout }),
	spanSetting("start_timeout", "how long a job may be with a worker that has not begun; 0 = for ever", func(q *job.Queue) *job.Millis { return &q.StartTimeout }),
	spanSetting("retention.completed", "how long finished jobs are kept; the server's `retention` where it is not given", func(q *job.Queue) *job.Millis { return &q.RetainDone }),
	spanSetting("retention.dead", "the same for dead jobs", func(q *job.Queue) *job.Millis { return &q.RetainDead }),
	policySetting("the policy of the queue's jobs, where neither job nor type says something else"),
	scalarSetting("max_running", "", "runs of the queue at once, copies included; 0 = no limit", notation.Whole(0, math.MaxInt32), readWhole(0, math.MaxInt32), unlessZero,
		func(q *job.Queue) *int { return &q.Protection.MaxRunning }),
	keysSetting("rate", "takes of the queue: `per_second`, and `burst` at once after a pause; a number alone is `per_second`",
		func(q *job.Queue) *job.Rate { return &q.Protection.Rate }, rateOf, rate, job.Rate.Check, perSecond),
	keysSetting("group_rate", "the same for each group", func(q *job.Queue) *job.Rate { return &q.Protection.GroupRate }, rateOf, rate, job.Rate.Check, perSecond),
	keysSetting("breaker", "circuit breaker of the queue; `{}` or `on` is one with the defaults", func(q *job.Queue) **job.Breaker { return &q.Protection.Breaker },
		breakerOf, breaker, (*job.Breaker).Check, onOff),
	keysSetting("group_breaker", "one for each group", func(q *job.Queue) **job.Breaker { return &q.Protection.GroupBreaker },
		breakerOf, breaker, (*job.Breaker).Check, onOff),
	keysSetting("retry_budget", "retries among all takes: `retry_share`, and `floor_per_second` that are always allowed; `{}` or `on` is one with the defaults",
		func(q *job.Queue) **job.RetryBudget { return &q.Protection.Budget }, retryBudgetOf, retryBudget, (*job.RetryBudget).Check, onOff),
	keysSetting("fair_share", "groups take turns; `weights` names how many jobs a group has in one, where it is not 1",
		func(q *job.Queue) **job.FairShare { return &q.Protection.Fair }, fairOf, fair, (*job.FairShare).Check, onOff),
}

// QueueSettingNamed finds a setting by its name, or by the one that it has in the API.
func QueueSettingNamed(name string) *QueueSetting {
	for i := range QueueSettings {
		if s := &QueueSettings[i]; s.Name == name || s.Wire == name {
			return s
		}
	}
	return nil
}

// ReadQueue reads the body of PATCH /queues/{name} over what q has: what is not
// named stays. The error joins one *job.Error for each field that is wrong.
func ReadQueue(body []byte, q *job.Queue) error {
	members, err := queueMembers(body)
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if s := QueueSettingNamed(name); s != nil && s.Wire == name {
			problems = append(problems, s.Read(q, members[name]))
			continue
		}
		var known []string
		for _, s := range QueueSettings {
			known = append(known, s.Wire)
		}
		field := cmp.Or(name, `""`)
		problems = append(problems, refuse(field, field+" "+strict.NotKnown+spell.Hint(name, known)))
	}
	return errors.Join(problems...)
}

// retention is the only member of the API that holds several settings.
const retention = "retention"

// queueMembers are the values of a body by their settings.
func queueMembers(body []byte) (members map[string]jsontext.Value, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, strict.Empty("a JSON object with settings, such as {\"concurrency\": 4}", nil)
	}
	if err := ReadPlain(body, &members); err != nil {
		return nil, err
	}
	value, there := members[retention]
	if !there {
		return members, nil
	}
	delete(members, retention)
	var spans map[string]jsontext.Value
	if json.Unmarshal(value, &spans) != nil {
		return nil, refuse(retention, retention+" must be an object")
	}
	if spans == nil { // null
		spans = map[string]jsontext.Value{"completed_ms": value, "dead_ms": value}
	}
	for name, value := range spans {
		members[retention+"."+name] = value
	}
	return members, nil
}

// AppendQueue writes the settings of a queue as members of an object that is open.
func AppendQueue(b []byte, q *job.Queue) []byte {
	inside := false
	for _, s := range QueueSettings {
		name, is := strings.CutPrefix(s.Wire, retention+".")
		switch {
		case is && !inside:
			b = append(comma(b), `"`+retention+`":{`...)
		case inside && !is:
			b = append(b, '}')
		}
		inside = is
		if value := s.tell(q); value != nil {
			b = append(append(comma(b), `"`+name+`":`...), textOfSetting(value)...)
		}
	}
	return b
}

func textOfSetting(value any) []byte {
	text, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic(err) // settings that were accepted can be told
	}
	return text
}

// scalarSetting is a setting that is one value. unit is what its name ends with in the API.
func scalarSetting[T comparable](name, unit, help string, k notation.Kind[T], read func(jsontext.Value) (T, error), tell func(T) any, at func(*job.Queue) *T) QueueSetting {
	return QueueSetting{
		Name: name, Wire: name + unit, Kind: k.Name, Help: help,
		Word: func(text string) (jsontext.Value, error) {
			value, err := k.Parse(text)
			if err != nil {
				return nil, err
			}
			return json.Marshal(tell(value))
		},
		Read: func(q *job.Queue, v jsontext.Value) error {
			value, err := *at(job.NewQueue("")), error(nil)
			if v.Kind() != 'n' {
				value, err = read(v)
			}
			if err != nil {
				return refuse(name+unit, name+unit+" "+err.Error())
			}
			*at(q) = value
			return nil
		},
		Show: func(q *job.Queue) string { return k.Show(*at(q)) },
		tell: func(q *job.Queue) any { return tell(*at(q)) },
	}
}

func itself[T any](v T) any { return v }

func unlessZero(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

func numberSetting[T ~int | ~int64](name, help string, least, most T, at func(*job.Queue) *T) QueueSetting {
	return scalarSetting(name, "", help, notation.Whole(least, most), readWhole(least, most), itself, at)
}

func readWhole[T ~int | ~int64](least, most T) func(jsontext.Value) (T, error) {
	return func(v jsontext.Value) (T, error) {
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil || n < int64(least) || n > int64(most) {
			return 0, fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		return T(n), nil
	}
}

func yesNoSetting(name, help string, at func(*job.Queue) *bool) QueueSetting {
	return scalarSetting(name, "", help, notation.YesNo, func(v jsontext.Value) (bool, error) {
		if v.Kind() != 't' && v.Kind() != 'f' {
			return false, errors.New("must be true or false")
		}
		return v.Kind() == 't', nil
	}, itself, at)
}

func wordSetting[T comparable](name, help string, k notation.Kind[T], at func(*job.Queue) *T) QueueSetting {
	words := strings.Split(k.Name, "|")
	return scalarSetting(name, "", help, k, func(v jsontext.Value) (value T, err error) {
		text := ""
		if v.Kind() != '"' || json.Unmarshal(v, &text) != nil {
			return value, errors.New("must be a string")
		}
		text = cmp.Or(text, words[0])
		if value, err = k.Parse(text); err != nil {
			err = errors.New("must be one of " + strings.Join(words, " ") + spell.Hint(text, words))
		}
		return value, err
	}, func(value T) any { return k.Show(value) }, at)
}

// spanSetting is a span of time; one that is not set is left out.
func spanSetting(name, help string, at func(*job.Queue) *job.Millis) QueueSetting {
	k := notation.Millis(0, job.MaxMillis)
	k.Show = func(m job.Millis) string {
		if m == job.Unset {
			return ""
		}
		return m.String()
	}
	return scalarSetting(name, "_ms", help, k, readWhole[job.Millis](0, job.MaxMillis), func(m job.Millis) any {
		if m == job.Unset {
			return nil
		}
		return int64(m)
	}, at)
}

func policySetting(help string) QueueSetting {
	const name = "retry"
	tell := func(q *job.Queue) any {
		if q.Retry.IsZero() {
			return nil
		}
		return q.Retry
	}
	return QueueSetting{
		Name: name, Wire: name, Kind: "keys", Help: help, tell: tell, Show: shown(tell),
		Word: func(string) (jsontext.Value, error) { return nil, errKeys },
		Read: func(q *job.Queue, v jsontext.Value) (err error) {
			own := job.Retry{}
			if v.Kind() != 'n' {
				own, err = job.ParseRetry(v)
			}
			if err != nil {
				return refuse(name, name+" is refused: "+err.Error())
			}
			q.Retry = own
			return nil
		},
	}
}

var errKeys = errors.New("must have keys, not a single value")

func shown(tell func(*job.Queue) any) func(*job.Queue) string {
	return func(q *job.Queue) string {
		if value := tell(q); value != nil {
			return string(textOfSetting(value))
		}
		return ""
	}
}

// keysSetting is a setting with values below it, which W holds in the API and
// the file. word is what a single value in its place means.
func keysSetting[T comparable, W any](name, help string, at func(*job.Queue) *T, tell func(T) *W, hear func(*W) T, check func(T, string) error, word func(string) string) QueueSetting {
	var none T
	s := QueueSetting{Name: name, Wire: name, Kind: "keys", Help: help}
	s.tell = func(q *job.Queue) any {
		if w := tell(*at(q)); w != nil {
			return w
		}
		return nil
	}
	s.Show = shown(s.tell)
	s.Read = func(q *job.Queue, v jsontext.Value) error {
		if v.Kind() == 'n' {
			*at(q) = none
			return nil
		}
		w := tell(*at(q))
		if w == nil {
			w = new(W)
		}
		wrong := problemsOf(v, w, name, unknownRefused)
		if *at(q) = hear(w); *at(q) == none {
			return wrong
		}
		return errors.Join(wrong, check(*at(q), name))
	}
	s.Word = func(text string) (jsontext.Value, error) {
		if value := word(text); value != "" {
			return jsontext.Value(value), nil
		}
		return nil, errKeys
	}
	return s
}

// onOff is a setting with its defaults, or none.
func onOff(text string) string { return map[string]string{"on": "{}", "off": "null"}[text] }

// perSecond is a rate in one number.
func perSecond(text string) string {
	if text == "off" {
		return "null"
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return ""
	}
	return `{"per_second":` + strconv.FormatFloat(n, 'g', -1, 64) + "}"
}
