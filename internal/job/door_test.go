package job

import "testing"

func TestDoorsAreReadAsTheyAreWritten(t *testing.T) {
	for d := range Doors {
		if got, err := ParseDoor(d.String()); got != d || err != nil {
			t.Errorf("%s is read as %s, %v", d, got, err)
		}
	}
	for _, s := range []string{"", "Jobs", "http"} {
		if _, err := ParseDoor(s); KindOf(err) != Invalid {
			t.Errorf("%q: %v", s, err)
		}
	}
}
