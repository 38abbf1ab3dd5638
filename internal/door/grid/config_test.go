package grid

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestTheConfigurationIsRead(t *testing.T) {
	c, err := ReadConfig([]byte(`{
		"profile": "modern", "heartbeat_interval": "2s", "lost_after": "PT6S", "task_bytes_max": 4096,
		"defaults": {"weight": 4}, "services": {"pricing": {"task_max_time": "50s"}, "idle": null}}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Profile != job.ProfileModern || c.HeartbeatInterval != 2*job.Second || c.LostAfter != 6*job.Second || c.TaskBytesMax != 4096 {
		t.Errorf("%+v", c)
	}
	q, from, err := Resolve(c.Profile, c.Defaults, c.Services["pricing"], nil)
	if err != nil || q.Grid.Weight != 4 || q.RunTimeout != 50*job.Second || from["task_max_time"] != FromService {
		t.Errorf("%v %+v", err, q)
	}
	if _, there := c.Services["idle"]; !there {
		t.Error("a service without options is a service")
	}
}

func TestNothingConfiguredIsTheDefault(t *testing.T) {
	c, err := ReadConfig([]byte(`{}`))
	if err != nil || c.Profile != job.ProfileSeed || c.HeartbeatInterval != 5*job.Second || c.LostAfter != 15*job.Second {
		t.Errorf("%v %+v", err, c)
	}
	for _, s := range BrokerSettings {
		if s.Name == "black_holes" {
			continue // follows the profile, see TestBlackHolesAreLookedForInModern
		}
		if _, err := ReadConfig([]byte(`{"` + s.Name + `": ` + asJSON(s.Default) + `}`)); err != nil {
			t.Errorf("the default of %s: %v", s.Name, err)
		}
	}
}

func asJSON(s string) string {
	if strings.Trim(s, "0123456789") == "" {
		return s
	}
	return `"` + s + `"`
}

func TestAWrongConfigurationIsToldByItsFields(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`[]`, "grid must be keys"},
		{`{"profile": "fast"}`, `grid.profile must be seed or modern, not "fast"`},
		{`{"profile": 1}`, "grid.profile must be seed or modern"},
		{`{"heartbeat_interval": "10ms"}`, "grid.heartbeat_interval must be at least 100ms"},
		{`{"lost_after": "5s"}`, "grid.lost_after 5s must be longer than grid.heartbeat_interval 5s"},
		{`{"task_bytes_max": 0}`, "grid.task_bytes_max must be a whole number from 1"},
		{`{"engines": 3}`, "grid.engines is not known; there are profile"},
		{`{"defaults": 3}`, "grid.defaults must be options"},
		{`{"defaults": {"weight": 12}}`, "grid.defaults.weight must be a whole number from 0 to 9"},
		{`{"services": []}`, "grid.services must be names"},
		{`{"services": {"a,b": {}}}`, `the name "a,b" must not contain ','`},
		{`{"services": {"pricing": {"weight": true}}}`, "grid.services.pricing.weight must be"},
	} {
		if _, err := ReadConfig([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %q", c.text, err, c.want)
		}
	}
}

func TestAConfigurationThatContradictsItselfIsRefused(t *testing.T) {
	c, err := ReadConfig([]byte(`{"defaults": {"max_copies": 1}, "services": {"pricing": {"on_timeout": "reschedule"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "max_copies must be at least 2") {
		t.Error(err)
	}
	c.Defaults = nil
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

func TestBlackHolesAreLookedForInModern(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: false, `{"profile":"modern"}`: true, `{"black_holes":true}`: true, `{"profile":"modern","black_holes":false}`: false,
	} {
		c, err := ReadConfig([]byte(text))
		if err != nil || (c.Holes() != nil) != want {
			t.Errorf("%s: %v, %v", text, c.Holes(), err)
		}
	}
	if _, err := ReadConfig([]byte(`{"black_holes":"some"}`)); err == nil || !strings.Contains(err.Error(), "grid.black_holes must be true or false") {
		t.Error(err)
	}
}
