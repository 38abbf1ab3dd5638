package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Unique keys and batches: zizq.md 1.7, 1.15, 1.16.

func TestEnqueueReadsKeys(t *testing.T) {
	list, err := enqueue(t, with(`"unique_key":"a b/ü","unique_while":"exists"`))
	if err != nil || *list.Job.Extras.Unique != (job.Unique{Key: "a b/ü", While: job.WhileExists}) {
		t.Errorf("%v", err)
	}
	list, err = enqueue(t, with(`"unique_key":"k"`))
	if err != nil || *list.Job.Extras.Unique != (job.Unique{Key: "k", While: job.WhileQueued}) {
		t.Errorf("%v", err)
	}
	list, err = enqueue(t, with(`"batch":{"key":"k","when":"true","fold":"$new","more":1}`))
	if err != nil || *list.Job.Extras.Batch != (job.Batch{Key: "k", When: "true", Fold: "$new"}) {
		t.Errorf("%v", err)
	}
	list, err = enqueue(t, with(`"batch":null,"unique_key":null,"unique_while":null`))
	if err != nil || list.Job.Extras != nil {
		t.Errorf("null means left out: %v", err)
	}
}

func TestEnqueueRefusesBadKeys(t *testing.T) {
	long := strings.Repeat("a", 1025)
	batch := func(members string) string { return with(`"batch":{` + members + `}`) }
	for _, c := range []struct {
		body, text string
		kind       job.Kind
	}{
		{with(`"unique_key":""`), "unique_key must not be empty", job.Invalid},
		{with(`"unique_key":7`), "unique_key must be a string", job.Invalid},
		{with(`"unique_key":"` + long + `"`), "unique_key must not be longer than 1024 bytes", job.Invalid},
		{with(`"unique_key":"a\u0000"`), "unique_key must not contain null bytes", job.Invalid},
		{with(`"unique_while":"active"`), "unique_while needs a unique_key", job.Invalid},
		{with(`"unique_key":"k","unique_while":"ready"`), "unique_while must be one of queued active exists", job.Invalid},
		{with(`"unique_key":"k","unique_while":1`), "unique_while must be a string", job.Invalid},
		{with(`"unique_key":"k","batch":{"key":"k","when":"true","fold":"$new"}`), "unique_key cannot be given together with batch", job.Invalid},
		{with(`"batch":7`), "batch must be an object", job.Invalid},
		{batch(`"when":"true","fold":"$new"`), "batch.key is missing", job.Invalid},
		{batch(`"key":"k","fold":"$new"`), "batch.when is missing", job.Invalid},
		{batch(`"key":"k","when":"true"`), "batch.fold is missing", job.Invalid},
		{batch(`"key":"k","when":null,"fold":"$new"`), "batch.when is missing", job.Invalid},
		{batch(`"key":"","when":"true","fold":"$new"`), "batch.key must not be empty", job.Invalid},
		{batch(`"key":"` + long + `","when":"true","fold":"$new"`), "batch.key must not be longer than 1024 bytes", job.Invalid},
		{batch(`"key":"k","when":true,"fold":"$new"`), "batch.when must be a string", job.Invalid},
		{batch(`"key":"k","key":"k","when":"true","fold":"$new"`), `batch.key is there twice`, job.Invalid},
		{batch(`"key":"k","when":"$exist","fold":"$new"`), "batch expression: when: ", job.Unprocessable},
		{batch(`"key":"k","when":"","fold":"$new"`), "batch expression: when: ", job.Unprocessable},
		{batch(`"key":"k","when":"true","fold":"$new |"`), "batch expression: fold: ", job.Unprocessable},
		{batch(`"key":"k","when":"true","fold":"` + strings.Repeat(" ", 17<<10) + `1"`), "batch expression: fold: the expression is longer", job.Unprocessable},
		{batch(`"key":"k","when":"$new.a.b","fold":"$new"`), "", 0}, // null has neither
		{batch(`"key":"k","when":"$new + 1 | .a","fold":"$new"`), "batch dry-run: when: ", job.Unprocessable},
		{batch(`"key":"k","when":"true","fold":"$new | error"`), "batch dry-run: fold: ", job.Unprocessable},
		{batch(`"key":"k","when":"true","fold":"empty"`), "batch dry-run: fold: it gave no output", job.Unprocessable},
		{batch(`"key":"k","when":"true","fold":"1, 2"`), "batch dry-run: fold: it gave more than one output", job.Unprocessable},
		{batch(`"key":"k","when":"false","fold":"repeat(1)"`), "batch dry-run: fold: it gave more than one output", job.Unprocessable},
		{batch(`"key":"k","when":"until(false; .)","fold":"$new"`), "batch dry-run: when: it took longer than 10ms", job.Unprocessable},
	} {
		var r jobs.Reader
		r.Body.WriteString(c.body)
		_, err := r.Enqueue("")
		switch {
		case c.text == "" && err != nil, c.text != "" && (err == nil || !strings.HasPrefix(err.Error(), c.text) || job.KindOf(err) != c.kind):
			t.Errorf("%.100s\n got %v (kind %d)\nwant %s", c.body, err, job.KindOf(err), c.text)
		}
	}
	var r jobs.Reader
	r.Body.WriteString(`{"jobs":[` + with(`"x":1`) + `,` + batch(`"key":"k","when":"true","fold":"empty"`) + `]}`)
	if _, err := r.Bulk(); job.KindOf(err) != job.Unprocessable || !strings.HasPrefix(err.Error(), "jobs[1]: batch dry-run: fold: ") {
		t.Errorf("in a bulk: %v", err)
	}
}

func TestFoldAsksTheExpressionsOfTheWaitingJob(t *testing.T) { // zizq.md 1.16
	for _, c := range []struct{ when, fold, existing, newcomer, want string }{ // "" = sealed
		{"true", "$existing + $new", "[1]", "[2]", "[1,2]"},
		{"true", "$new", "1", "null", "null"},
		{"$existing < $new", "$existing - $new", "1", "9007199254740993", "-9007199254740992"},
		{"0", "$existing", "18446744073709551615", "2", "18446744073709551615"},
		{"true, false", "$new", "1", "2", "2"}, // the first output counts
		{"false, true", "$new", "1", "2", ""},
		{"null", "$new", "1", "2", ""},
		{"empty", "$new", "1", "2", ""},
		{"error", "$new", "1", "2", ""},
		{"$existing | length < 2", "$new", "true", "2", ""}, // fails
		{"until(false; .)", "$new", "1", "2", ""},           // takes too long
		{"nonsense", "$new", "1", "2", ""},                  // put by another version
		{". == null", "[., $existing]", "1", "2", "[null,1]"},
		{"$ENV == {}", "$ENV", "1", "2", "{}"},
	} {
		b := job.Batch{Key: "k", When: c.when, Fold: c.fold}
		got, joins, err := jobs.Fold(0)(t.Context(), &b, []byte(c.existing), []byte(c.newcomer))
		if err != nil || string(got) != c.want || joins != (c.want != "") {
			t.Errorf("%s ? %s: %s, %t, %v; want %s", c.when, c.fold, got, joins, err, c.want)
		}
	}
}

func TestAFoldThatFailsIsTheNewcomersFault(t *testing.T) { // zizq.md 9, defect 19
	for fold, says := range map[string]string{
		"$existing + $new":               "cannot add",
		"$existing, $new":                "it gave more than one output, and must give exactly one",
		"empty":                          "it gave no output, and must give exactly one",
		"until(false; .)":                "it took longer than 10ms",
		`[range(100)]`:                   "the result is larger than 64 bytes",
		"nonsense":                       "function not defined",
		`error("not today")`:             "not today",
		"[$existing] | .[0] |= error(1)": "",
	} {
		b := job.Batch{Key: "k", When: "true", Fold: fold}
		_, _, err := jobs.Fold(64)(t.Context(), &b, []byte("1"), []byte(`"x"`))
		if job.KindOf(err) != job.Unprocessable || !strings.HasPrefix(err.Error(), "batch fold: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", fold, err)
		}
	}
	b := job.Batch{Key: "k", When: "true", Fold: "$new"}
	if _, joins, err := jobs.Fold(8)(t.Context(), &b, []byte("1"), []byte(`"1234567"`)); joins || err != nil {
		t.Errorf("a condition over a payload that is too large does not hold: %t, %v", joins, err)
	}
}

func TestAFoldEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, b := range []job.Batch{{When: "until(false; .)", Fold: "1"}, {When: "true", Fold: "until(false; .)"}} {
		if _, _, err := jobs.Fold(0)(ctx, &b, []byte("1"), []byte("2")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestAnswersTellKeys(t *testing.T) {
	u := job.Job{Extras: &job.Extras{Unique: &job.Unique{Key: `a"b`, While: job.WhileActive}, Labels: []job.Label{{Key: "l", Value: "v"}}}}
	b := job.Job{Extras: &job.Extras{Batch: &job.Batch{Key: "k", When: `$new == "x"`, Fold: "$new"}}}
	for _, c := range []struct {
		added engine.Added
		want  string
	}{
		{engine.Added{Job: &u}, `"unique_key":"a\"b","unique_while":"active","labels":{"l":"v"},"duplicate":false,"folded":false}`},
		{engine.Added{Job: &u, Duplicate: true}, `,"duplicate":true,"folded":false}`},
		{engine.Added{Job: &b, Folded: true}, `"batch":{"key":"k","when":"$new == \"x\"","fold":"$new"},"duplicate":false,"folded":true}`},
	} {
		if got := string(jobs.AppendAdded(nil, c.added, nil)); !strings.HasSuffix(got, c.want) {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}
