package job

import (
	"strings"
	"testing"
)

func TestExclusionNamesWhatIsWrongWithIt(t *testing.T) {
	for field, edit := range map[string]func(*Exclusion){
		"":                          func(*Exclusion) {},
		"failures_before_exclusion": func(x *Exclusion) { x.Failures = 0 },
		"ttl_ms":                    func(x *Exclusion) { x.TTL = -1 },
		"max_fraction":              func(x *Exclusion) { x.MaxFraction = 1.5 },
	} {
		x := DefaultExclusion()
		edit(&x)
		refuses(t, "exclusion", field, x.Check("exclusion"))
	}
	if x := SeedExclusion(); x.Check("exclusion") != nil {
		t.Error(x.Check("exclusion"))
	}
}

func TestBlackHolesNameWhatIsWrongWithThem(t *testing.T) {
	for field, edit := range map[string]func(*BlackHoles){
		"":               func(*BlackHoles) {},
		"failures":       func(b *BlackHoles) { b.Failures = HealthTasksMax + 1 },
		"fast_ms":        func(b *BlackHoles) { b.Fast = -1 },
		"elsewhere":      func(b *BlackHoles) { b.Elsewhere = -0.1 },
		"suspended_ms":   func(b *BlackHoles) { b.Suspended = 0 },
		"quarantined_ms": func(b *BlackHoles) { b.Quarantined = 31 * Day },
		"max_fraction":   func(b *BlackHoles) { b.MaxFraction = 2 },
	} {
		b := DefaultBlackHoles()
		edit(&b)
		refuses(t, "black_holes", field, b.Check("black_holes"))
	}
	for s, want := range map[HealthState]string{HealthWell: "well", HealthSuspended: "suspended", HealthQuarantined: "quarantined", HealthProbed: "probed", HealthStates: "unknown(4)"} {
		if s.String() != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
}

func refuses(t *testing.T, name, field string, err error) {
	t.Helper()
	if (err == nil) != (field == "") || err != nil && !strings.HasPrefix(err.Error(), name+"."+field+" must") {
		t.Errorf("%s: %v", field, err)
	}
}
