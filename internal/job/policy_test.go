package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func mustParse(t testing.TB, text string) Retry {
	t.Helper()
	r, err := ParseRetry([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

func TestParseRetryReadsEveryFieldOfThePolicy(t *testing.T) {
	got := mustParse(t, `{"limit": 25, "max_age": "72h", "place": "back", "loss_limit": 7,
		"curve": {"kind": "polynomial", "base": "15s", "exponent": 4.5, "jitter": 30000, "count": "including"}}`)
	want := Retry{
		Limit: LimitOf(25), MaxAge: 72 * Hour, Place: PlaceBack, LossLimit: LimitOf(7),
		Curve: &Curve{Kind: CurvePolynomial, Base: 15 * Second, Exponent: 4.5, Spread: 30 * Second, Count: CountIncluding},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v %+v", got, got.Curve)
	}
}

func TestACurveTakesTheDefaultsOfItsKind(t *testing.T) {
	for text, want := range map[string]Curve{
		`{"kind":"polynomial"}`:                        {Kind: CurvePolynomial, Base: 15 * Second, Exponent: 4, Spread: 30 * Second},
		`{"kind":"uniform"}`:                           {Kind: CurveUniform, Base: 5 * Second, Cap: 2000 * Second},
		`{"kind":"exponential"}`:                       {Kind: CurveExponential, Unit: Second, Factor: 2, Cap: Hour, Jitter: Jitter{Kind: JitterFull}},
		`{"kind":"exponential","jitter":"none"}`:       {Kind: CurveExponential, Unit: Second, Factor: 2, Cap: Hour},
		`{"kind":"exponential","offset":3}`:            {Kind: CurveExponential, Unit: Second, Factor: 2, Cap: Hour, Offset: 3, Jitter: Jitter{Kind: JitterFull}},
		`{"kind":"constant"}`:                          {Kind: CurveConstant, Delay: 5 * Second},
		`{"kind":"constant","delay":1e3}`:              {Kind: CurveConstant, Delay: Second},
		`{"kind":"staircase"}`:                         {Kind: CurveStaircase, Base: 5 * Second},
		`{"kind":"linear","base":1,"step":"2s"}`:       {Kind: CurveLinear, Base: 1, Step: 2 * Second},
		`{"kind":"list","delays":["5s",300]}`:          {Kind: CurveList, Delays: []Millis{5000, 300}},
		`{"kind":"list","delays":[1],"jitter":"±10%"}`: {Kind: CurveList, Delays: []Millis{1}, Jitter: Jitter{JitterPercent, 10}},
		`{"kind":"immediate"}`:                         {Kind: CurveImmediate},
	} {
		got := mustParse(t, `{"curve":`+text+`}`)
		if !reflect.DeepEqual(*got.Curve, want) {
			t.Errorf("%s is %+v", text, *got.Curve)
		}
	}
}

func TestTheServerDefaultIsTheZizqSeeds(t *testing.T) {
	want := mustParse(t, `{"limit":25,"place":"keep","loss_limit":20,"curve":{"kind":"polynomial","base":"15s","exponent":4,"jitter":"30s"}}`)
	if got := DefaultRetry(); !reflect.DeepEqual(got, want) || got.Validate() != nil {
		t.Errorf("got %+v %+v", got, got.Curve)
	}
}

func TestAnImmediateCurveRetriesAtTheFrontUnlessAPlaceIsGiven(t *testing.T) {
	if got := mustParse(t, `{"curve":{"kind":"immediate"}}`); got.Place != PlaceFront {
		t.Errorf("place %q, want front", got.Place)
	}
	if got := mustParse(t, `{"place":"back","curve":{"kind":"immediate"}}`); got.Place != PlaceBack {
		t.Errorf("place %q, want back", got.Place)
	}
}

func TestTheMostSpecificPolicyWinsFieldByField(t *testing.T) {
	server := DefaultRetry()
	queue := mustParse(t, `{"limit":"unlimited","max_age":"1h","place":"back","curve":{"kind":"constant","delay":"1s"}}`)
	job := mustParse(t, `{"limit":0,"curve":{"kind":"uniform","cap":"1m"}}`)
	got := job.Over(queue.Over(server))
	want := Retry{
		Limit: LimitOf(0), MaxAge: Hour, Place: PlaceBack, LossLimit: LimitOf(20),
		Curve: &Curve{Kind: CurveUniform, Base: 5 * Second, Cap: Minute}, // whole, nothing of the queue's
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v %+v", got, got.Curve)
	}
	if got := (Retry{}).Over(queue); !reflect.DeepEqual(got, queue) {
		t.Errorf("nothing over the queue's policy is %+v", got)
	}
	if queue.LossLimit.IsSet() {
		t.Error("Over changed the policy below")
	}
}

func TestUnlimitedMaxAgeLiftsTheQueues(t *testing.T) {
	got := mustParse(t, `{"max_age":"unlimited"}`).Over(mustParse(t, `{"max_age":"1h"}`))
	if got.MaxAge != MaxMillis {
		t.Errorf("max age %v, want unlimited", got.MaxAge)
	}
}

func TestLimitsTellNoneUnlimitedAndUnsetApart(t *testing.T) {
	for text, want := range map[string]struct {
		limit   int64
		bounded bool
	}{
		`{}`: {0, false}, `{"limit":"unlimited"}`: {0, false},
		`{"limit":"none"}`: {0, true}, `{"limit":0}`: {0, true}, `{"limit":4294967295}`: {4294967295, true},
	} {
		r := mustParse(t, text)
		limit, bounded := r.LimitValue()
		if limit != want.limit || bounded != want.bounded || r.Limit.IsSet() != (text != `{}`) {
			t.Errorf("%s: %d %v", text, limit, bounded)
		}
	}
	for text, want := range map[string]uint32{
		`{}`: math.MaxInt32, `{"loss_limit":"unlimited"}`: math.MaxInt32, `{"loss_limit":4294967295}`: math.MaxInt32, `{"loss_limit":3}`: 3,
	} {
		if got := mustParse(t, text).LossLimitValue(); got != want {
			t.Errorf("%s: loss limit %d, want %d", text, got, want)
		}
	}
}

func TestEveryProblemIsNamedAtOnceWithItsPath(t *testing.T) {
	_, err := ParseRetry([]byte(`{"limit":-1,"loss_limit":0,"max_age":"5x","place":"middle","rules":{},"limit":3,
		"curve":{"kind":"exponential","unit":"2h","factor":0.5,"cap":"1h","offset":-1,"jitter":"101%","base":1,"speed":9}}`))
	top, ok := errors.AsType[*Error](err)
	problems, isList := errors.AsType[Problems](err)
	if !ok || !isList || top.Kind != Invalid || top.Field != "" {
		t.Fatalf("%#v", err)
	}
	paths := make([]string, len(problems))
	for i, p := range problems {
		paths[i] = p.Field
		if p.Kind != Invalid || !strings.HasPrefix(p.Text, p.Field+": ") || !strings.Contains(err.Error(), p.Text) {
			t.Errorf("%+v is not told by %v", p, err)
		}
	}
	const want = "limit loss_limit max_age place rules " +
		"curve.offset curve.jitter curve.base curve.speed curve.cap curve.factor"
	for _, path := range strings.Fields(want) {
		if !strings.Contains(" "+strings.Join(paths, " ")+" ", " "+path+" ") {
			t.Errorf("%s is not among %v", path, paths)
		}
	}
	if len(paths) != len(strings.Fields(want)) {
		t.Errorf("problems with %v, want %s", paths, want)
	}
}

func TestParseRetryRefuses(t *testing.T) {
	for text, problem := range map[string]string{
		``: "is not JSON", `{"limit":3`: "is not JSON", `{} {}`: "is not JSON", `[]`: "must be an object", `null`: "must be an object",
		`{"Limit":3}`:           "Limit: unknown key",
		`{"":3}`:                `"": unknown key`,
		`{"limit":1,"limit":2}`: "limit: is there twice",
		`{"limit":null}`:        "limit: must be a whole number",
		`{"limit":2.5}`:         "limit:", `{"limit":4294967296}`: "limit:", `{"limit":"few"}`: "limit:",
		`{"loss_limit":"none"}`: "loss_limit: must be at least 1",
		`{"max_age":0}`:         "max_age: must be above 0", `{"max_age":-5}`: "max_age: must not be negative", `{"max_age":null}`: "max_age: must be a duration",
		`{"max_age":1.5}`: "max_age: a bare number", `{"max_age":1e300}`: "max_age: is too long", `{"max_age":1e999}`: "max_age: is too long",
		`{"max_age":9223372036854775808}`: "too long", `{"max_age":true}`: "max_age: must be a duration",
		`{"place":""}`: "place:", `{"place":3}`: "place: must be a string",
		`{"curve":"fast"}`:           "curve: must be an object",
		`{"curve":null}`:             "curve: must be an object",
		`{"curve":{}}`:               "curve.kind: is missing",
		`{"curve":{"kind":"cubic"}}`: "curve.kind: kind \"cubic\"", `{"curve":{"kind":""}}`: "curve.kind:",
		`{"curve":{"kind":"list"}}`: "curve.delays: is missing", `{"curve":{"kind":"list","delays":[]}}`: "curve.delays: must have at least one",
		`{"curve":{"kind":"list","delays":["5s",-1]}}`: "curve.delays[1]: must not be negative", `{"curve":{"kind":"list","delays":5}}`: "curve.delays: must be a list",
		`{"curve":{"kind":"list","delays":[` + strings.Repeat("1,", 100) + `1]}}`: "curve.delays: has 101 entries",
		`{"curve":{"kind":"linear"}}`:                                 "curve.base: is missing",
		`{"curve":{"kind":"linear","base":"5s","step":1,"cap":"1s"}}`: "curve.cap: 1s is below base 5s",
		`{"curve":{"kind":"linear","base":0,"step":1,"cap":0}}`:       "curve.cap: must be above 0",
		`{"curve":{"kind":"uniform","base":0}}`:                       "curve.base: must be above 0",
		`{"curve":{"kind":"uniform","base":"1h"}}`:                    "curve.cap: is missing, and its default 33m20s is below base 1h",
		`{"curve":{"kind":"staircase","base":0}}`:                     "curve.base: must be above 0",
		`{"curve":{"kind":"staircase","cap":"1h"}}`:                   "curve.cap: is no field of kind staircase",
		`{"curve":{"kind":"exponential","unit":0}}`:                   "curve.unit: must be above 0",
		`{"curve":{"kind":"exponential","factor":0.99}}`:              "curve.factor:", `{"curve":{"kind":"exponential","factor":"2"}}`: "curve.factor: must be a finite number",
		`{"curve":{"kind":"exponential","factor":1e999}}`: "curve.factor: must be a finite number",
		`{"curve":{"kind":"exponential","offset":1.5}}`:   "curve.offset: must be a whole number", `{"curve":{"kind":"exponential","offset":2147483648}}`: "curve.offset:",
		`{"curve":{"kind":"exponential","jitter":"NaN%"}}`: "curve.jitter:", `{"curve":{"kind":"exponential","jitter":"-5%"}}`: "curve.jitter:",
		`{"curve":{"kind":"exponential","jitter":5}}`: "curve.jitter: must be a string", `{"curve":{"kind":"exponential","jitter":"100.1%"}}`: "from 0 to 100",
		`{"curve":{"kind":"polynomial","jitter":"full"}}`: "curve.jitter: duration", `{"curve":{"kind":"polynomial","count":"all"}}`: "curve.count: count \"all\"",
		`{"curve":{"kind":"immediate","base":"5s"}}`:  "curve.base: is no field of kind immediate",
		`{"curve":{"kind":"constant","delay":"-5s"}}`: "curve.delay: duration \"-5s\": a wait cannot be negative",
	} {
		r, err := ParseRetry([]byte(text))
		if err == nil || !strings.Contains(err.Error(), problem) || KindOf(err) != Invalid || !r.IsZero() {
			t.Errorf("%s: %v, want %s", text, err, problem)
		}
	}
}

func TestAHostilePolicyGetsABoundedAnswer(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"curve":{`)
	for i := range 500 {
		b.WriteString(`"` + strings.Repeat("k", i) + `":1,`)
	}
	b.WriteString(`"kind":"constant"}}`)
	if _, err := ParseRetry([]byte(b.String())); err == nil || len(err.Error()) > 20_000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// One rule wherever a policy comes from: the formula of the Zizq seed has no
// sign for E, and its clients send negative ones.
func TestAnExponentMayBeNegative(t *testing.T) {
	r, err := ParseRetry([]byte(`{"curve":{"kind":"polynomial","exponent":-0.5}}`))
	if err != nil || r.Curve.Exponent != -0.5 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestValidateFindsWhatGoCodeGotWrong(t *testing.T) {
	for problem, c := range map[string]Curve{
		"kind: use one of":                    {},
		"base: must not be negative":          {Kind: CurvePolynomial, Base: -1},
		"cap: is too long":                    {Kind: CurveUniform, Base: 1, Cap: MaxMillis + 1},
		"unit: is no field of kind constant":  {Kind: CurveConstant, Unit: 1},
		"exponent: must be a finite number":   {Kind: CurvePolynomial, Exponent: math.NaN()},
		"count: use previous or including":    {Kind: CurvePolynomial, Count: 9},
		"factor: must be a finite number":     {Kind: CurveExponential, Unit: 1, Factor: math.Inf(1)},
		"offset: must be from 0":              {Kind: CurveExponential, Unit: 1, Factor: 2, Offset: -1},
		"jitter: the percentage must be":      {Kind: CurveList, Delays: []Millis{1}, Jitter: Jitter{JitterPercent, math.NaN()}},
		"jitter: unknown(9)":                  {Kind: CurveList, Delays: []Millis{1}, Jitter: Jitter{Kind: 9}},
		"jitter: full has no percentage":      {Kind: CurveList, Delays: []Millis{1}, Jitter: Jitter{JitterFull, 5}},
		"jitter: of kind list is not":         {Kind: CurveList, Delays: []Millis{1}, Spread: 5},
		"jitter: of kind polynomial is an":    {Kind: CurvePolynomial, Jitter: Jitter{Kind: JitterFull}},
		"delays: must have at least one":      {Kind: CurveList},
		"delays: has 101 entries":             {Kind: CurveList, Delays: make([]Millis, 101)},
		"delays[1]: must not be negative":     {Kind: CurveList, Delays: []Millis{1, -1}},
		"base: must be above 0; to retry wit": {Kind: CurveStaircase},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%+v: %v, want %s", c, err, problem)
		}
	}
	bad := Retry{Place: 9, MaxAge: -1, LossLimit: LimitOf(0)}
	if err := bad.Validate(); err == nil || strings.Count(err.Error(), ";") != 2 {
		t.Errorf("%v", err)
	}
}

func TestZizqCurveIsTheSeedsFormulaForAnyWireValue(t *testing.T) {
	for _, exponent := range []float64{0, 1.5, 4, -1, math.MaxFloat32, -math.MaxFloat32} {
		c := ZizqCurve(exponent, math.MaxUint32, math.MaxUint32)
		if err := c.Validate(); err != nil || c.Count != CountPrevious {
			t.Errorf("exponent %g: %v", exponent, err)
		}
	}
}

// policies are examples of every kind for the round trips.
var policies = []string{
	`{}`,
	`{"limit":"none"}`,
	`{"limit":"unlimited","loss_limit":"unlimited","max_age":"unlimited","place":"front"}`,
	`{"limit":25,"max_age":"3d","place":"keep","loss_limit":20,"curve":{"kind":"polynomial","base":"15s","exponent":4,"jitter":"30s"}}`,
	`{"curve":{"kind":"polynomial","base":0,"exponent":-1.25,"jitter":0,"count":"including"}}`,
	`{"curve":{"kind":"uniform","base":"3s","cap":"30s"}}`,
	`{"curve":{"kind":"exponential","unit":"1m","factor":1.5,"cap":"180m","offset":7,"jitter":"±12.5%"}}`,
	`{"curve":{"kind":"exponential","jitter":"0%"}}`,
	`{"curve":{"kind":"exponential","jitter":"none"}}`,
	`{"curve":{"kind":"constant","delay":0}}`,
	`{"curve":{"kind":"staircase"}}`,
	`{"curve":{"kind":"linear","base":"10s","step":"20s","cap":"60s","jitter":"equal"}}`,
	`{"curve":{"kind":"linear","base":0,"step":0,"jitter":"decorrelated"}}`,
	`{"curve":{"kind":"list","delays":["5s","5m","30m",0]}}`,
	`{"place":"back","curve":{"kind":"immediate"}}`,
	`{"rules":[]}`,
	`{"limit":3,"curve":{"kind":"constant"},"rules":[` + everyRule + `]}`,
}

func TestJSONAndDiskGiveBackTheSamePolicy(t *testing.T) {
	for _, text := range policies {
		r, err := ParseRetry([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		roundTrips(t, r)
	}
}

// roundTrips wants r back from its JSON and from its stored form.
func roundTrips(t *testing.T, r Retry) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON Retry
	if err := json.Unmarshal(text, &fromJSON); err != nil || !reflect.DeepEqual(fromJSON, r) {
		t.Fatalf("%s came back as %+v %+v, %v", text, fromJSON, fromJSON.Curve, err)
	}
	stored := r.AppendBinary([]byte("before"))
	fromDisk, rest, err := DecodeRetry(append(bytes.TrimPrefix(stored, []byte("before")), "after"...))
	if err != nil || string(rest) != "after" || !reflect.DeepEqual(fromDisk, r) {
		t.Fatalf("%s came back from disk as %+v %+v, rest %q, %v", text, fromDisk, fromDisk.Curve, rest, err)
	}
}

func TestJSONWritesOnlyWhatIsSetAndACurveInFull(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                               `{}`,
		`{"limit":0}`:                      `{"limit":0}`,
		`{"curve":{"kind":"exponential"}}`: `{"curve":{"kind":"exponential","cap":"1h","unit":"1s","factor":2,"offset":0,"jitter":"full"}}`,
		`{"max_age":259200000,"curve":{"kind":"polynomial"}}`: `{"max_age":"3d","curve":{"kind":"polynomial","base":"15s","exponent":4,"count":"previous","jitter":"30s"}}`,
	} {
		if got, err := json.Marshal(mustParse(t, text)); err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	if _, err := json.Marshal(Curve{Kind: CurveExponential, Factor: math.NaN()}); err == nil {
		t.Error("NaN was written")
	}
}

// TestFormat1IsReadForever pins the stored form: these bytes are on disks.
func TestFormat1IsReadForever(t *testing.T) {
	for stored, text := range map[string]string{
		"\x01\x00":                         `{}`,
		"\x01\x0d\x04\x02\x00":             `{"limit":3,"place":"front","loss_limit":"unlimited"}`,
		"\x01\x90\x02\x04\x88\x27":         `{"curve":{"kind":"constant","delay":"5s"}}`,
		"\x01\x90\x40\x07\x02\xe8\x07\x00": `{"curve":{"kind":"list","delays":["1s",0]}}`,
	} {
		want := mustParse(t, text)
		got, rest, err := DecodeRetry([]byte(stored))
		if err != nil || len(rest) != 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v %q %v, want %s", stored, got, rest, err, text)
		}
		if now := want.AppendBinary(nil); string(now) != stored {
			t.Errorf("%s is now stored as %q, want %q", text, now, stored)
		}
	}
}

func TestTheUsualOverridesAreSmallOnDisk(t *testing.T) {
	for text, most := range map[string]int{`{}`: 2, `{"limit":3}`: 3, `{"limit":3,"curve":{"kind":"polynomial"}}`: 21} {
		r := mustParse(t, text)
		if got := len(r.AppendBinary(nil)); got > most {
			t.Errorf("%s takes %d bytes, want at most %d", text, got, most)
		}
	}
}

func TestEveryDamageToTheStoredFormIsCorrupt(t *testing.T) {
	for _, text := range policies {
		r, _ := ParseRetry([]byte(text))
		stored := r.AppendBinary(nil)
		for cut := range stored {
			if _, _, err := DecodeRetry(stored[:cut]); KindOf(err) != Corrupt || err == nil {
				t.Errorf("%s cut to %d bytes: %v", text, cut, err)
			}
		}
	}
	for name, stored := range map[string]string{
		"format 0": "\x00\x00", "format 2": "\x02\x00", "unknown bit": "\x01\x80\x80\x20", "33 rules": "\x01\x80\x80\x10\x21", "rule that does nothing": "\x01\x80\x80\x10\x01\x00\x00", "curve fields without a curve": "\x01\x20\x01",
		"place 9": "\x01\x04\x09", "kind 0": "\x01\x10\x00", "kind 99": "\x01\x10\x63", "101 delays": "\x01\x90\x40\x07\x65",
		"limit beyond 32 bits": "\x01\x01\x81\x80\x80\x80\x10", "age beyond the longest": "\x01\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"NaN": "\x01\x90\x08\x03\x01\x00\x00\x00\x00\x00\xf8\x7f",
	} {
		if r, _, err := DecodeRetry([]byte(stored)); err == nil || KindOf(err) != Corrupt || !r.IsZero() {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func FuzzParseRetry(f *testing.F) {
	for _, text := range policies {
		f.Add([]byte(text))
	}
	for _, text := range []string{``, `null`, `{"curve":{"kind":7}}`, `{"limit":1e9}`, `{"curve":{"kind":"list","delays":[[]]}}`, "{\"\xff\":1}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseRetry(b)
		if err != nil {
			if KindOf(err) != Invalid || !r.IsZero() {
				t.Fatalf("%q: %+v with %v", b, r, err)
			}
			return
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("%q was read, but: %v", b, err)
		}
		roundTrips(t, r)
	})
}

func FuzzRetryBinary(f *testing.F) {
	for _, text := range policies {
		r, _ := ParseRetry([]byte(text))
		f.Add(r.AppendBinary(nil))
	}
	f.Add([]byte("\x01\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, rest, err := DecodeRetry(b)
		if err != nil {
			if KindOf(err) != Corrupt || !r.IsZero() {
				t.Fatalf("%+v with %v", r, err)
			}
			return
		}
		if !bytes.HasSuffix(b, rest) {
			t.Fatalf("the rest %q is not of %q", rest, b)
		}
		again, rest, err := DecodeRetry(r.AppendBinary(nil))
		if err != nil || len(rest) != 0 || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v came back as %+v, rest %q, %v", r, again, rest, err)
		}
	})
}

func TestAJitterIsReadAsItIsWritten(t *testing.T) {
	for text, want := range map[string]Jitter{
		"none": {Kind: JitterNone}, "full": {Kind: JitterFull}, "10%": {JitterPercent, 10}, "+-12.5%": {JitterPercent, 12.5}, "±0%": {JitterPercent, 0}, "100%": {JitterPercent, 100},
	} {
		if got, err := ParseJitter(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"10": "use none", "": "use none", "%": "use none", "1e1%": "use none", "-5%": "use none", "ten%": "use none", "100.1%": "from 0 to 100", "101%": "from 0 to 100", "1.2.3%": "from 0 to 100",
	} {
		if got, err := ParseJitter(text); KindOf(err) != Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, want)
		}
	}
}
