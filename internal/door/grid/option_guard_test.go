package grid

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestRedundancyAndExclusionAreReadWhole(t *testing.T) {
	q, _ := resolved(t, job.ProfileSeed, `{}`, `{"redundancy":{"strategies":["tail"],"running_share":0.5}}`,
		`{"redundancy":{"seconds_burst":"10s","hedge_half_life":3600000},"exclusion":{}}`)
	want := job.DefaultRedundancy()
	want.SecondsBurst, want.HedgeHalfLife = 10*job.Second, job.Hour
	if got := q.Grid.Redundancy; got == nil || *got != want {
		t.Errorf("the session's word is not all that counts: %+v", got)
	}
	if got := q.Grid.Exclusion; got == nil || *got != job.DefaultExclusion() {
		t.Errorf("%+v", got)
	}
	q, _ = resolved(t, job.ProfileModern, `{}`, `{}`, `{}`)
	if got := q.Grid.Redundancy; got == nil || *got != job.DefaultRedundancy() || q.Grid.Exclusion != nil {
		t.Errorf("modern: %+v, %+v", got, q.Grid.Exclusion)
	}
	if q, _ = resolved(t, job.ProfileModern, `{}`, `{}`, `{"redundancy":"off"}`); q.Grid.Redundancy != nil {
		t.Errorf("off is %+v", q.Grid.Redundancy)
	}
}

func TestRedundancyAndExclusionSayWhatIsWrong(t *testing.T) {
	for given, want := range map[string]string{
		`{"redundancy":true}`:                           `must be "off" or an object`,
		`{"redundancy":"on"}`:                           `must be "off" or an object`,
		`{"redundancy":["median"]}`:                     `must be "off" or an object`,
		`{"redundancy":{"strategies":[]}}`:              "a list of names",
		`{"redundancy":{"strategies":["quorum"]}}`:      "there is no strategy quorum; choose from tail, mean,",
		`{"redundancy":{"zeal":1,"faktor":2}}`:          `must not have "faktor"; it may have tail_done,`,
		`{"redundancy":{"median_factor":"2"}}`:          `another median_factor than "2"`,
		`{"redundancy":{"median_factor":0.5}}`:          "median_factor must be a number from 1 to 1000",
		`{"redundancy":{"median_age":"soon"}}`:          `another median_age than "soon"`,
		`{"redundancy":{"hedge_samples":513}}`:          "hedge_samples must be a whole number from 1 to 512",
		`{"exclusion":{"failures_before_exclusion":0}}`: "failures_before_exclusion must be a whole number from 1 to 100",
		`{"exclusion":{"max_fraction":2}}`:              "max_fraction must be a number from 0 to 1",
		`{"exclusion":3}`:                               `must be "off" or an object`,
	} {
		_, _, err := Resolve(job.ProfileSeed, givenText(t, `{}`), givenText(t, `{}`), givenText(t, given))
		name, _, _ := strings.Cut(given[2:], `"`)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", given, err)
		}
	}
}
