package config

import (
	"slices"
	"strings"
	"testing"
)

// FuzzSetting gives any text to any setting: as a flag and as a variable of
// the environment it means the same, what `reprise config` then shows means
// the same again, and a refusal names what was refused, briefly.
func FuzzSetting(f *testing.F) {
	for i, text := range map[string]string{
		"port": "0", "host": "[::1]", "insecure": "yes", "allow-host": "a, b ,,a", "shutdown-timeout": "PT1M30,5S",
		"body-max": "1.5MiB", "max-inflight-bytes": "1 gb", "disk-reserve": "0.015%", "cache-size": "9223372036854775807",
		"sync": "interval", "sync-interval": "1h2m", "global-in-flight-limit": "-0", "default-retry-limit": "unlimited",
		"default-completed-job-retention": "1e3", "root-dir": "~/q", "log-level": "trace", "reattach-window": "½s",
	} {
		f.Add(byte(slices.IndexFunc(settings, func(s setting) bool { return s.name == i })), text)
	}
	f.Fuzz(func(t *testing.T, index byte, text string) {
		s := settings[int(index)%len(settings)]
		if text == "" || s.name == "config" || strings.HasPrefix(s.name, "default-backoff") || strings.ContainsRune(text, 0) {
			return // no value; a file; three that go together; no text of a process
		}
		cfg, report, err := load(t, []string{"--" + s.name + "=" + text}, nil, "")
		byEnv, _, errEnv := load(t, nil, []string{env(envOurs, s.name) + "=" + text}, "")
		if s.name == "port" && strings.HasPrefix(text, "tcp://") {
			return // Kubernetes sets the variable
		}
		if err != nil {
			if errEnv == nil || len(err.Error()) > 4<<10 {
				t.Fatalf("--%s=%q is refused with %.300q, in the environment with %v", s.name, text, err, errEnv)
			}
			if !strings.Contains(err.Error(), s.name) {
				t.Errorf("the refusal of --%s=%q does not name it: %v", s.name, text, err)
			}
			return
		}
		if errEnv != nil || s.show(&byEnv) != s.show(&cfg) {
			t.Fatalf("--%s=%q means %q, in the environment %q, %v", s.name, text, s.show(&cfg), s.show(&byEnv), errEnv)
		}
		shown := report.of(s.name).Value
		again, _, err := load(t, []string{"--" + s.name + "=" + shown}, nil, "")
		if err != nil && shown != "" {
			t.Fatalf("--%s=%q is shown as %q, which is refused: %v", s.name, text, shown, err)
		}
		if s.show(&again) != s.show(&cfg) && shown != "" {
			t.Errorf("--%s=%q is shown as %q, which means %q", s.name, text, shown, s.show(&again))
		}
	})
}
