package spell

import (
	"slices"
	"strings"
	"testing"
)

func TestTheNameThatWasMeant(t *testing.T) {
	names := []string{"host", "port", "sync", "sync_interval", "on_timeout", "max_retries", "enqueue", "queue"}
	for s, want := range map[string]string{
		"prot": "port", "hosts": "host", "sinc": "sync", "sync_intervall": "sync_interval", "host": "host",
		"syncInterval": "sync_interval", "SYNC-INTERVAL": "sync_interval", "Sync Interval": "sync_interval",
		"enq": "enqueue", "queues": "queue", "timeout": "on_timeout", "max_retry": "max_retries",
		"x": "", "": "", "-": "", "colour": "", strings.Repeat("host", 100): "",
	} {
		if got := Meant(s, names); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
	if got := Hint("prot", names) + Hint("colour", names); got != "; did you mean port?" {
		t.Error(got)
	}
}

func TestANameIsFoldedToItsLetters(t *testing.T) {
	if got := Fold("Task_max-TIME 2"); got != "taskmaxtime2" {
		t.Error(got)
	}
}

func TestHowFarNamesAreFromEachOther(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"abc", "abc", 0},
		{"abc", "axc", 1},
		{"abc", "abxc", 1},
		{"abxc", "abc", 1},
		{"ab", "ba", 1},
		{"xab", "xba", 1},
		{"abcd", "badc", 2},
		{"abc", "cab", 2},
		{"ab", "bxa", 3},
		{"aab", "bba", 2},
		{"kitten", "sitting", 3},
		{"xaby", "xbzy", 2},
		{strings.Repeat("a", 100), strings.Repeat("a", 100), 0},
		{strings.Repeat("a", 101), "", 100},
		{"", strings.Repeat("a", 101), 100},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestHowFarAMisspeltNameMayBe(t *testing.T) {
	for _, c := range []struct {
		s     string
		known []string
		want  string
	}{
		{"a", []string{"b"}, ""},
		{"a", []string{"ab"}, ""},
		{"ab", []string{"xb"}, "xb"},
		{"ab", []string{"xyb"}, ""},
		{"abcd", []string{"abxy"}, "abxy"},
		{"abcd", []string{"axyz"}, ""},
		{"abcdefgh", []string{"abcdexyz"}, "abcdexyz"},
		{"abcdefg", []string{"abcdxyz"}, ""},
		{"abcdefghijkl", []string{"abcdefghwxyz"}, ""},
		{"abcd", []string{"abxd", "axcd"}, "abxd"},
		{"abcd", []string{"axyd", "abxd"}, "abxd"}, // the first of the closest
		{"abc", []string{"abcdefgh"}, "abcdefgh"},
		{"ab", []string{"abcdefgh"}, ""},                                       // a beginning
		{"time", []string{"deadtime", "xxabcdefgh", "timetotal"}, "timetotal"}, // a beginning before a part
		{"abcd", []string{"abxd", "abcdefgh"}, "abxd"},                         // few letters off before a beginning
		{"cdef", []string{"abcdefgh"}, "abcdefgh"},
		{"cdef", []string{"abcdefghi"}, ""},
		{"cde", []string{"abcdef"}, ""},
		{"abcdefgh", []string{"cdef"}, "cdef"},
		{"cdef", []string{"xxcdefxx", "yycdefyy"}, "xxcdefxx"},
	} {
		if got := Meant(c.s, c.known); got != c.want {
			t.Errorf("%q of %q is %q, want %q", c.s, c.known, got, c.want)
		}
	}
}

func TestTheTableOfOriginals(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Originals {
		if !slices.Contains([]string{"GridServer", "correlate", "Zizq"}, o.System) || o.Here == "" && o.Note == "" || o.Unit != "" && unitNames[o.Unit] == "" {
			t.Errorf("%+v", o)
		}
		for _, name := range o.Names {
			key := o.System + " " + Fold(name)
			if seen[key] || name != strings.TrimSpace(name) || name == "" {
				t.Errorf("%q is there twice, or is no name", key)
			}
			seen[key] = true
			if found, ok := Find(o.System, strings.ToUpper(name)); !ok || found.Names[0] != o.Names[0] {
				t.Errorf("%s is not found: %+v", name, found)
			}
		}
	}
	for _, system := range []string{"GridServer", "Zizq"} {
		if _, ok := Find(system, "colour"); ok {
			t.Error("colour is a setting of nobody")
		}
	}
	if _, ok := Find("Zizq", "COLLECTION_TYPE"); ok {
		t.Error("that is a setting of GridServer")
	}
}

func TestAnOriginalIsAnsweredWithWhatToWriteHere(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"PRIORITY", "7", " is a setting of GridServer; here it is weight: write weight: 7$"},
		{"taskMaxTime", "1.5", "write task_max_time: 1.5s"},
		{"taskMaxTime", "PT5S", "write task_max_time: PT5S"},
		{"Client Timeout", "5", "write client_timeout: 5m (a bare number there counts minutes, and a span here names its unit)"},
		{"Client Timeout", "PT5M", "write client_timeout: PT5M (a bare"},
		{"taskMaxTime", "", "here it is task_max_time (a bare number there counts seconds"},
		{"taskMaxTime", strings.Repeat("1", 64), "write task_max_time: " + strings.Repeat("1", 64) + "s ("},
		{"taskMaxTime", strings.Repeat("1", 65), "here it is task_max_time (a bare"},
		{"COLLECTION_TYPE", `"AFTER_SUBMIT"`, "write collection: after_submit"},
		{"COLLECTION_TYPE", `"x"`, "here it is collection$"},
		{"Timeout Factor", "15", "here it is grid.lost_after, and it is a span of time"},
		{"CHECKPOINT", "true", "; here every task may leave a checkpoint"},
	} {
		o, _ := Find("GridServer", c.name)
		if got := o.Answer(c.value); !strings.Contains(got+"$", c.want) {
			t.Errorf("%s: %s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
}
