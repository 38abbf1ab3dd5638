package grid

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
)

func givenText(t *testing.T, text string) Given {
	t.Helper()
	var g Given
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func resolved(t *testing.T, p job.Profile, broker, service, session string) (*job.Queue, Origins) {
	t.Helper()
	q, from, err := Resolve(p, givenText(t, broker), givenText(t, service), givenText(t, session))
	if err != nil {
		t.Fatal(err)
	}
	return q, from
}

// Every option has a value in each profile, and what is shown is read back.
func TestEveryOptionReadsWhatItShows(t *testing.T) {
	if len(Options) < 20 {
		t.Errorf("there are only %d options", len(Options))
	}
	seen := map[string]bool{}
	for _, p := range []job.Profile{job.ProfileSeed, job.ProfileModern} {
		q, _ := resolved(t, p, `{}`, `{}`, `{}`)
		for _, o := range Options {
			if p == job.ProfileSeed && seen[o.Name] {
				t.Errorf("%s is there twice", o.Name)
			}
			seen[o.Name] = true
			text, err := json.Marshal(o.show(q))
			if err != nil || string(text) != o.Values[p] {
				t.Errorf("%s in %s: shows %s, not %s (%v)", o.Name, p, text, o.Values[p], err)
			}
		}
		settle(q)
		if err := q.Grid.Check(); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// other is a value of each option that no profile has.
var other = map[string]string{
	"weight": `7`, "urgent": `true`, "max_engines": `8`, "task_max_time": `"50s"`, "on_timeout": `"reschedule"`, "poll_period": `"1m"`, "timeout_slack": `"3s"`,
	"assign_timeout": `"7s"`, "affinity_wait": `"3s"`, "max_retries": `4`, "losses": `"apart"`, "max_losses": `6`, "retry_backoff": `"3s"`, "retry_elsewhere": `true`, "max_reschedules": `2`,
	"max_copies": `3`, "copies_on": `"other_host"`, "idempotent": `false`, "front_order": `"lifo"`, "reschedule_first": `true`,
	"redundancy": `["tail","hedge"]`, "copies_idle_only": `true`, "copy_budget": `0.25`, "copy_budget_burst": `"2m"`, "copies_running": `0.5`,
	"min_samples": `9`, "left_factor": `3`, "clone_tasks": `20`, "clone_risk": `0.1`, "clone_copies": `2`, "tail_done": `0.8`, "mean_factor": `4`, "stddev_factor": `2`, "median_done": `0.5`, "median_factor": `1.5`,
	"median_age": `"2s"`, "hedge_quantile": `0.9`, "hedge_samples": `50`, "hedge_half_life": `"2d"`,
	"failures_before_exclusion": `4`, "exclusion_each_failure": `false`, "exclusion_time": `"5m"`, "exclusion_share": `0.25`,
	"evicted_place": `"front"`, "lost_place": `"back"`, "collection": `"later"`, "auto_cancel": `"always"`, "keep": `"2h"`, "fence_wait": `"7s"`, "client_timeout": `"5m"`,
}

// Options are kept in places of their own: what one writes, no other shows.
func TestEveryOptionHasAPlaceOfItsOwn(t *testing.T) {
	for _, o := range Options {
		q, _ := resolved(t, job.ProfileSeed, `{}`, `{}`, `{}`)
		before := map[string]any{}
		for _, each := range Options {
			before[each.Name] = each.show(q)
		}
		if other[o.Name] == "" {
			t.Fatalf("the test knows no other value of %s", o.Name)
		}
		if err := o.read(q, jsontext.Value(other[o.Name])); err != nil {
			t.Fatalf("%s: %v", o.Name, err)
		}
		if text, _ := json.Marshal(o.show(q)); string(text) != other[o.Name] {
			t.Errorf("%s shows %s, not %s", o.Name, text, other[o.Name])
		}
		for _, each := range Options {
			alike := each.Name == o.Name || o.Name == rescheduleFirst && each.Name == evictedPlace
			if now := each.show(q); !alike && !reflect.DeepEqual(now, before[each.Name]) {
				t.Errorf("%s changes %s from %v to %v", o.Name, each.Name, before[each.Name], now)
			}
		}
	}
}

func TestAnOptionRefusesWhatItCannotHold(t *testing.T) {
	for _, c := range []struct{ options, want string }{
		{`{"weight":10}`, "options.weight must be a whole number from 0 to 9"},
		{`{"weight":-1}`, "options.weight must be a whole number from 0 to 9"},
		{`{"weight":1e9}`, "options.weight must be"},
		{`{"weight":2.5}`, "options.weight must be"},
		{`{"weight":"5"}`, "options.weight must be"},
		{`{"weight":99999999999999999999}`, "options.weight must be"},
		{`{"weight":null}`, "options.weight must not be null"},
		{`{"weigth":5}`, "options.weigth is no option; did you mean weight?"},
		{`{"max_retry":5}`, "did you mean max_retries?"},
		{`{"colour":5}`, "options.colour is no option; docs/grid.md lists those there are"},
		{`{"timeout":"5s"}`, "did you mean on_timeout?"},
		{`{"task_max_time":"-5s"}`, "cannot be negative"},
		{`{"task_max_time":"5 fortnights"}`, "options.task_max_time is refused: duration"},
		{`{"task_max_time":"400d"}`, "must be at most 30d"},
		{`{"task_max_time":true}`, "options.task_max_time is refused"},
		{`{"keep":"0s"}`, "options.keep must be at least 1ms"},
		{`{"max_copies":17}`, "options.max_copies must be a whole number from 1 to 16"},
		{`{"max_engines":-1}`, "options.max_engines must be a whole number, at least 0"},
		{`{"redundancy":"median"}`, "options.redundancy must be a list of tail, mean, stddev, median"},
		{`{"redundancy":["medium"]}`, "options.redundancy is refused: there is no strategy medium"},
		{`{"clone_risk":1}`, "options.clone_risk must be a number from 0.001 to 0.999"},
		{`{"clone_copies":17}`, "options.clone_copies must be a whole number from 1 to 16"},
		{`{"left_factor":0.9}`, "options.left_factor must be a number from 1 to 1000"},
		{`{"redundancy":["tail"],"idempotent":false}`, "not idempotent"},
		{`{"copy_budget":1.5}`, "options.copy_budget must be a number from 0 to 1"},
		{`{"mean_factor":0.5}`, "options.mean_factor must be a number from 1 to 1000"},
		{`{"on_timeout":"fail"}`, "options.on_timeout must be one of retry, reschedule"},
		{`{"urgent":"yes"}`, "options.urgent must be true or false"},
		{`{"on_timeout":"reschedule","idempotent":false}`, "use retry"},
		{`{"on_timeout":"reschedule","max_copies":1}`, "options.max_copies must be at least 2"},
	} {
		_, _, err := Resolve(job.ProfileSeed, nil, nil, givenText(t, c.options))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", c.options, err, c.want)
			continue
		}
		if own, ok := errors.AsType[*job.Error](err); !ok || own.Kind != job.Invalid || own.Field == "" {
			t.Errorf("%s: it is no named refusal: %#v", c.options, err)
		}
	}
}

// Who comes from GridServer is told what its settings are called here, whichever
// way they are written, and with which value.
func TestTheNamesOfGridServerAreAnsweredWithOurs(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"INVOCATION_MAX_TIME", "50", "options.INVOCATION_MAX_TIME is a setting of GridServer; here it is task_max_time: write task_max_time: 50s (a bare number there counts seconds, and a span here names its unit)"},
		{"Task Max Time", "50", "write task_max_time: 50s"},
		{"taskMaxTime", `"2m"`, "write task_max_time: 2m"},
		{"RESCHEDULE_ON_TIMEOUT", "true", "write on_timeout: reschedule"},
		{"Reschedule on Timeout", "false", "write on_timeout: retry"},
		{"rescheduleOnTimeout", "7", "here it is on_timeout"},
		{"Poll Period of Service Rescheduler", "60", "write poll_period: 60s"},
		{"ENGINE_BLACKLISTING", "true", "write failures_before_exclusion: 1"},
		{"AFFINITY_WAIT", "500", "write affinity_wait: 500ms"},
		{"Max Millis Per Heartbeat", "30000", "write grid.heartbeat_interval: 30000ms"},
		{"heartbeat_interval", `"5s"`, "it is a setting of the broker: write grid.heartbeat_interval in the configuration file"},
		{"KILL_ENGINE_ON_CANCEL", "true", "here an engine is always told to stop"},
		{"max-engines", "5", "here it is max_engines: write max_engines: 5"},
		{"max-losses", "5", "did you mean max_losses?"},
		{"task_max_tme", `"5s"`, "options.task_max_tme is no option; did you mean task_max_time?"},
	} {
		err := Given{c.name: []byte(c.value)}.Check("options")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, not %q", c.name, c.value, err, c.want)
		}
	}
	for _, o := range spell.Originals {
		name, ofBroker := strings.CutPrefix(o.Here, "grid.")
		known := slices.ContainsFunc(BrokerSettings, func(s BrokerSetting) bool { return s.Name == name })
		if o.System == gridServer && o.Here != "" && (ofBroker != known || !ofBroker && optionOf(name) == nil) {
			t.Errorf("%v: there is no %s", o.Names, o.Here)
		}
	}
	if err := (Given{"": []byte("5")}).Check("options"); err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("no name at all: %v", err)
	}
}

// GridServer counts in seconds what is a span here, so that the unit of a bare
// number is never guessed.
func TestABareNumberIsNoSpan(t *testing.T) {
	for _, o := range Options {
		if o.Shape != "a span of time" {
			continue
		}
		for _, value := range []string{"50", `"50"`, "1.5", "5e1"} {
			err := Given{o.Name: []byte(value)}.Check("options")
			if err == nil || value != "5e1" && !strings.Contains(err.Error(), "it has no unit and could be milliseconds or seconds: write "+strings.Trim(value, `"`)+"ms or") {
				t.Errorf("%s: %s: %v", o.Name, value, err)
			}
		}
		if err := (Given{o.Name: []byte("0")}).Check("options"); err != nil && !strings.Contains(err.Error(), "at least") {
			t.Errorf("%s: 0: %v", o.Name, err)
		}
	}
}

func TestAllThatIsWrongIsToldTogether(t *testing.T) {
	_, _, err := Resolve(job.ProfileSeed, givenText(t, `{"weight":11}`), givenText(t, `{"max_copies":0}`), givenText(t, `{"urgent":1,"foo":2}`))
	for _, want := range []string{"grid.defaults.weight", "grid.services.max_copies", "options.urgent", "options.foo"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

// grid.md, decision 5: for every option.
func TestASessionWinsOverItsServiceOverTheBrokerOverTheProfile(t *testing.T) {
	for i, o := range Options {
		for strongest := range int(levels) {
			list := make([]Given, levels)
			for l := 1; l <= strongest; l++ {
				list[l] = Given{o.Name: jsontext.Value(o.Values[job.ProfileModern])}
			}
			_, from, err := Resolve(job.ProfileSeed, list[1], list[2], list[3])
			if err != nil {
				t.Fatal(o.Name, err)
			}
			if from[o.Name] != Level(strongest) {
				t.Errorf("%s is from %s, not %s", o.Name, from[o.Name], Level(strongest))
			}
			next := Options[(i+1)%len(Options)].Name
			if o.Name != rescheduleFirst && from[next] != FromProfile {
				t.Errorf("%s changes where %s is from", o.Name, next)
			}
		}
	}
	q, _ := resolved(t, job.ProfileSeed, `{"weight":1,"max_engines":1,"max_copies":3}`, `{"weight":2,"max_engines":2}`, `{"weight":3}`)
	if g := q.Grid; g.Weight != 3 || g.MaxEngines != 2 || g.MaxCopies != 3 {
		t.Errorf("%+v", g)
	}
}

// grid.md, decision 0, and 1 to 4.
func TestTheProfilesDifferAsTheSpecificationSays(t *testing.T) {
	s, _ := resolved(t, job.ProfileSeed, `{}`, `{}`, `{}`)
	m, _ := resolved(t, job.ProfileModern, `{}`, `{}`, `{}`)
	if !s.Grid.LossesCharged || m.Grid.LossesCharged {
		t.Error("losses")
	}
	if s.Grid.EvictedPlace != job.PlaceBack || m.Grid.EvictedPlace != job.PlaceKeep {
		t.Error("the place of evicted tasks")
	}
	if copiesOf(s).Strategies != 0 || copiesOf(m).Strategies != job.RedundancyOf(job.RedundantMedian) {
		t.Error("redundancy")
	}
	want := job.DefaultRedundancy() // of the specification, guards and all
	if *copiesOf(m) != want {
		t.Errorf("modern: %+v", copiesOf(m))
	}
	if want.Strategies, want.SecondsShare, want.RunningShare, want.AlsoBusy = 0, 1, 1, true; *copiesOf(s) != want {
		t.Errorf("seed: %+v", copiesOf(s))
	}
	if *m.Grid.Exclusion != job.DefaultExclusion() {
		t.Errorf("modern: %+v", m.Grid.Exclusion)
	}
	if x := job.SeedExclusion(); s.Grid.Exclusion.Failures != 0 || s.Grid.Exclusion.EachFailure != x.EachFailure || s.Grid.Exclusion.TTL != x.TTL || s.Grid.Exclusion.MaxFraction != x.MaxFraction {
		t.Errorf("seed, where nothing is excluded before somebody asks for it: %+v", s.Grid.Exclusion)
	}
	if settle(s); s.Grid.Exclusion != nil || s.Grid.Redundancy != nil {
		t.Error("what is off is not there")
	}
	for _, q := range []*job.Queue{s, m} {
		g := q.Grid
		retries, _ := q.Retry.Limit.Count()
		if g.Weight != 5 || retries != 3 || g.MaxReschedules != 3 || g.OnTimeout != job.TimeoutRetry || g.PollPeriod != 0 || g.MaxCopies != 2 ||
			g.CopyPlace != job.PlaceBack || q.Retry.Place != job.PlaceFront || q.FrontOrder != job.FrontBySeq || !q.RequireToken {
			t.Errorf("%+v %+v", q, g)
		}
	}
	if s.Retry.Curve.Kind != job.CurveImmediate || m.Retry.Curve.Kind != job.CurveExponential || m.Retry.Curve.Cap != job.Minute {
		t.Error("waits before retries")
	}
}

func TestRescheduleFirstIsAboutBothKinds(t *testing.T) {
	for _, c := range []struct {
		broker, session string
		copies, evicted job.Place
		from            Level // of evicted_place
	}{
		{`{}`, `{"reschedule_first":true}`, job.PlaceFront, job.PlaceFront, FromSession},
		{`{"reschedule_first":true}`, `{}`, job.PlaceFront, job.PlaceFront, FromBroker},
		{`{"reschedule_first":true}`, `{"reschedule_first":false}`, job.PlaceBack, job.PlaceKeep, FromSession},
		{`{"reschedule_first":true}`, `{"evicted_place":"back"}`, job.PlaceFront, job.PlaceBack, FromSession},
		{`{}`, `{"reschedule_first":true,"evicted_place":"keep"}`, job.PlaceFront, job.PlaceKeep, FromSession},
		{`{"evicted_place":"back"}`, `{"reschedule_first":false}`, job.PlaceBack, job.PlaceBack, FromSession},
	} {
		q, from := resolved(t, job.ProfileModern, c.broker, `{}`, c.session)
		if q.Grid.CopyPlace != c.copies || q.Grid.EvictedPlace != c.evicted || from[evictedPlace] != c.from {
			t.Errorf("%s %s: copies %s, evicted %s from %s", c.broker, c.session, q.Grid.CopyPlace, q.Grid.EvictedPlace, from[evictedPlace])
		}
	}
}

// What is not collected leaves at once; what is, stays as long as its session.
func TestCollectionDecidesHowLongTasksStay(t *testing.T) {
	for word, want := range map[string]job.Millis{"immediately": job.MaxMillis, "after_submit": job.MaxMillis, "later": job.MaxMillis, "never": 0} {
		q, _ := resolved(t, job.ProfileSeed, `{}`, `{}`, `{"collection":"`+word+`"}`)
		if q.RetainDone != want {
			t.Errorf("%s: %d", word, q.RetainDone)
		}
	}
}
