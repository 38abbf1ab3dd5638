package grid

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
)

func given(t *testing.T, text string) Given {
	t.Helper()
	var g Given
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func resolved(t *testing.T, p Profile, broker, service, session string) Resolved {
	t.Helper()
	r, err := Resolve(p, given(t, broker), given(t, service), given(t, session))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every option has a value in each profile, and what is shown is read back.
func TestEveryOptionReadsWhatItShows(t *testing.T) {
	if len(Options) < 25 {
		t.Errorf("there are only %d options", len(Options))
	}
	seen := map[string]bool{}
	for _, p := range []Profile{Seed, Modern} {
		r := resolved(t, p, `{}`, `{}`, `{}`)
		for _, o := range Options {
			if p == Seed && seen[o.Name] {
				t.Errorf("%s is there twice", o.Name)
			}
			seen[o.Name] = true
			text, err := json.Marshal(o.show(&r.Settings))
			if err != nil || string(text) != o.Values[p] {
				t.Errorf("%s in %s: shows %s, not %s (%v)", o.Name, p, text, o.Values[p], err)
			}
		}
	}
}

// Options write to fields of their own: two that share one would be one.
func TestEveryOptionHasAFieldOfItsOwn(t *testing.T) {
	other := map[string]string{
		"weight": `7`, "urgent": `true`, "max_engines": `8`, "task_max_time": `"50s"`, "on_timeout": `"reschedule"`, "poll_period": `"60s"`,
		"assign_timeout": `"7s"`, "max_retries": `4`, "losses": `"apart"`, "max_losses": `6`, "max_reschedules": `2`, "retry_backoff": `"3s"`,
		"retry_backoff_cap": `"2m"`, "front_order": `"lifo"`, "reschedule_first": `true`, "evicted_place": `"keep"`, "redundancy": `["tail"]`,
		"max_copies": `3`, "copies_on": `"other_host"`, "copies_idle_only": `true`, "copy_budget": `0.5`, "min_samples": `9`, "idempotent": `false`,
		"failures_before_exclusion": `2`, "exclusion_time": `"1m"`, "collection": `"later"`, "client_timeout": `"5m"`, "auto_cancel": `"always"`,
		"stop_grace": `"1s"`,
	}
	fields := map[string]string{}
	for _, o := range Options {
		var s Settings
		before := reflect.ValueOf(s)
		if err := o.read(&s, jsontext.Value(other[o.Name])); err != nil {
			t.Fatalf("%s: %v", o.Name, err)
		}
		// false is the zero value of its field, so it is looked at from true
		if o.Name == "idempotent" {
			s.Idempotent = true
			before = reflect.ValueOf(s)
			if err := o.read(&s, jsontext.Value(other[o.Name])); err != nil {
				t.Fatal(err)
			}
		}
		after, changed := reflect.ValueOf(s), ""
		for i := range after.NumField() {
			if !reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
				changed += after.Type().Field(i).Name
			}
		}
		if changed == "" || fields[changed] != "" {
			t.Errorf("%s changes %q, which is of %q", o.Name, changed, fields[changed])
		}
		fields[changed] = o.Name
		delete(other, o.Name)
	}
	if n := reflect.TypeFor[Settings]().NumField(); n != len(fields) || len(other) > 0 {
		t.Errorf("%d fields, %d options write them; left over: %v", n, len(fields), other)
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
		{`{"weigth":5}`, "options.weigth is no option"},
		{`{"timeout":"5s"}`, "did you mean on_timeout?"},
		{`{"task_max_time":"-5s"}`, "cannot be negative"},
		{`{"task_max_time":"5 fortnights"}`, "options.task_max_time is refused: duration"},
		{`{"task_max_time":"400d"}`, "must be at most 365d"},
		{`{"task_max_time":true}`, "options.task_max_time is refused"},
		{`{"on_timeout":"fail"}`, "options.on_timeout must be one of retry, reschedule"},
		{`{"urgent":"yes"}`, "options.urgent must be true or false"},
		{`{"copy_budget":1.5}`, "options.copy_budget must be a number from 0 to 1"},
		{`{"copy_budget":"NaN"}`, "options.copy_budget must be"},
		{`{"redundancy":"median"}`, "options.redundancy must be a list of tail, mean"},
		{`{"redundancy":["medium"]}`, "options.redundancy must be a list of"},
		{`{"redundancy":["tail","tail"]}`, "must not have tail twice"},
		{`{"redundancy":["tail"],"idempotent":false}`, "not idempotent"},
		{`{"on_timeout":"reschedule","idempotent":false}`, "use retry"},
		{`{"on_timeout":"reschedule","max_copies":1}`, "options.max_copies must be at least 2"},
		{`{"retry_backoff":"2m"}`, "must not be above retry_backoff_cap 1m"},
	} {
		_, err := Resolve(Seed, nil, nil, given(t, c.options))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", c.options, err, c.want)
			continue
		}
		if own, ok := errors.AsType[*job.Error](err); !ok || own.Kind != job.Invalid || own.Field == "" {
			t.Errorf("%s: it is no named refusal: %#v", c.options, err)
		}
	}
}

func TestAllThatIsWrongIsToldTogether(t *testing.T) {
	_, err := Resolve(Seed, given(t, `{"weight":11}`), given(t, `{"max_copies":0}`), given(t, `{"urgent":1,"foo":2}`))
	for _, want := range []string{"grid.defaults.weight", "grid.services.max_copies", "options.urgent", "options.foo"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

// grid.md, decision 5: for every option.
func TestASessionWinsOverItsServiceOverTheBrokerOverTheProfile(t *testing.T) {
	const chosen = 4
	for i, o := range Options {
		value := o.Values[Modern]
		for strongest := range chosen {
			levels := make([]Given, chosen)
			for l := 1; l <= strongest; l++ {
				levels[l] = Given{o.Name: jsontext.Value(value)}
			}
			r, err := Resolve(Seed, levels[1], levels[2], levels[3])
			if err != nil {
				t.Fatal(o.Name, err)
			}
			want := Level(strongest)
			if shown := r.Show()[o.Name]; r.From[o.Name] != want || shown.From != want.String() {
				t.Errorf("option %d %s is from %s, shown as %s, not %s", i, o.Name, r.From[o.Name], shown.From, want)
			}
			if r.From[Options[(i+1)%len(Options)].Name] != FromProfile {
				t.Errorf("%s changes where another one is from", o.Name)
			}
		}
	}
	r := resolved(t, Seed, `{"weight":1,"max_engines":1,"max_copies":3}`, `{"weight":2,"max_engines":2}`, `{"weight":3}`)
	if r.Weight != 3 || r.MaxEngines != 2 || r.MaxCopies != 3 {
		t.Errorf("weight %d, max_engines %d, max_copies %d", r.Weight, r.MaxEngines, r.MaxCopies)
	}
}

// grid.md, decision 0.
func TestTheProfilesDifferAsTheSpecificationSays(t *testing.T) {
	s, m := resolved(t, Seed, `{}`, `{}`, `{}`), resolved(t, Modern, `{}`, `{}`, `{}`)
	if s.Losses != LossesCharged || m.Losses != LossesApart {
		t.Error("losses")
	}
	if s.EvictedPlace != EvictedBack || m.EvictedPlace != EvictedKeep {
		t.Error("the place of evicted tasks")
	}
	if s.PollPeriod != 0 || m.PollPeriod != 0 {
		t.Error("the poll window is off")
	}
	if len(s.Strategies) != 0 || len(m.Strategies) != 1 || m.Strategies[0] != Median {
		t.Error("redundancy")
	}
	if s.CopyBudget != 0 || m.CopyBudget != 0.05 || m.CopiesOn != OtherHost || !m.IdleOnly {
		t.Error("budgets and guards")
	}
	for _, r := range []Resolved{s, m} {
		if r.Weight != 5 || r.MaxRetries != 3 || r.MaxReschedules != 3 || r.OnTimeout != TimeoutRetry || r.RescheduleFirst ||
			r.FrontOrder != job.FrontBySeq || r.MaxCopies != 2 || r.MinSamples != 5 || r.Collection != Immediately {
			t.Errorf("%+v", r.Settings)
		}
	}
}

// Who says that tasks may not run twice does so whatever the broker asks for.
func TestNoCopiesOfTasksThatAreNotIdempotent(t *testing.T) {
	r := resolved(t, Modern, `{}`, `{}`, `{"idempotent":false}`)
	if r.Strategies != nil || r.From["redundancy"] != FromSession {
		t.Errorf("%v from %s", r.Strategies, r.From["redundancy"])
	}
}

func TestKeptOptionsAreReadBack(t *testing.T) {
	was := resolved(t, Modern, `{"weight":2}`, `{"task_max_time":"50s"}`, `{"redundancy":["tail","hedge"],"copy_budget":0.25}`)
	kept, err := was.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeResolved(Seed, kept)
	if err != nil || !reflect.DeepEqual(got, was) {
		t.Errorf("%v\n%+v\n%+v", err, got, was)
	}
	// Of an older version, which did not know some options yet, and had others.
	got, err = DecodeResolved(Seed, []byte(`{"weight":{"value":3,"from":"session"},"gone":{"value":1,"from":"broker"}}`))
	if err != nil || got.Weight != 3 || got.From["weight"] != FromSession || got.MaxRetries != 3 || got.From["max_retries"] != FromProfile {
		t.Errorf("%v %+v", err, got)
	}
	for _, bad := range []string{``, `[]`, `{"weight":{"value":"heavy"}}`} {
		if _, err := DecodeResolved(Seed, []byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
