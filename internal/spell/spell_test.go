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
	if _, ok := Find("GridServer", "colour"); ok {
		t.Error("colour is a setting of nobody")
	}
}

func TestAnOriginalIsAnsweredWithWhatToWriteHere(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"PRIORITY", "7", " is a setting of GridServer; here it is weight: write weight: 7"},
		{"taskMaxTime", "1.5", "write task_max_time: 1.5s"},
		{"taskMaxTime", "PT5S", "write task_max_time: PT5S"},
		{"Client Timeout", "5", "write client_timeout: 5m"},
		{"COLLECTION_TYPE", `"AFTER_SUBMIT"`, "write collection: after_submit"},
		{"COLLECTION_TYPE", `"x"`, "here it is collection"},
		{"Timeout Factor", "15", "here it is grid.lost_after, and it is a span of time"},
		{"CHECKPOINT", "true", "; here every task may leave a checkpoint"},
	} {
		o, _ := Find("GridServer", c.name)
		if got := o.Answer(c.value); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
}
