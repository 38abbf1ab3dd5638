package monitor

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/door/pipeline"
)

// site is a monitor of a pipeline that does not run: the test counts.
func site(now *time.Time) (*Monitor, *pipeline.Output) {
	o := &pipeline.Output{Name: "http.0"}
	p := &pipeline.Pipeline{Plan: &pipeline.Plan{
		Inputs: []*pipeline.Input{{Name: "tail.0"}}, Filters: []*pipeline.Filter{{Name: "grep.0"}}, Outputs: []*pipeline.Output{o},
	}}
	return New(Options{
		Pipeline: p, Version: "1", Now: func() time.Time { return *now }, Health: true,
		Limits: Limits{Errors: 5, GivenUp: 5, Seconds: 60},
	}), o
}

func get(m *Monitor, path string, edit ...string) (status int, body string) {
	r := httptest.NewRequest("GET", "http://127.0.0.1"+path, nil)
	for i := 0; i < len(edit); i += 2 {
		r.Header.Set(edit[i], edit[i+1])
	}
	if len(edit) > 0 && edit[0] == "Host" {
		r.Host = edit[1]
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestHealthLooksAtItsPeriod has the vectors of reference 5: 5 errors are healthy, 6 are
// not, 6 that are older than the period are.
func TestHealthLooksAtItsPeriod(t *testing.T) {
	for name, count := range map[string]func(o *pipeline.Output, n int64){
		"errors":         func(o *pipeline.Output, n int64) { o.Count.Errors.Add(n) },
		"retries_failed": func(o *pipeline.Output, n int64) { o.Count.GivenUp.Add(n) },
	} {
		now := time.Unix(1e9, 0)
		m, o := site(&now)
		expect := func(when string, status int, text string) {
			t.Helper()
			if got, body := get(m, "/api/v1/health"); got != status || body != text {
				t.Errorf("%s, %s: %d %q, want %d %q", name, when, got, body, status, text)
			}
			if got, body := get(m, "/api/v2/health"); got != status || !strings.Contains(body, `"`+name+`":`) {
				t.Errorf("%s, %s: %d %q", name, when, got, body)
			}
		}
		expect("without a sample", 200, "ok\n")
		m.Sample()
		count(o, 5)
		m.Sample()
		expect("five", 200, "ok\n")
		count(o, 1)
		m.Sample()
		expect("six", 500, "error\n")
		for range 57 {
			m.Sample()
		}
		expect("at the end of the period", 500, "error\n") // the first sample is in it yet
		m.Sample()
		expect("when the oldest left", 200, "ok\n")
	}
}

func TestCountersHaveTheOriginalsNames(t *testing.T) {
	now := time.Unix(1e9, 0)
	m, o := site(&now)
	o.Count.Records.Add(7)
	o.Count.Retries.Add(2)
	_, body := get(m, "/api/v1/metrics")
	var all struct {
		Input, Filter, Output map[string]map[string]int64
	}
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	if all.Output["http.0"]["proc_records"] != 7 || all.Output["http.0"]["retries"] != 2 || len(all.Output["http.0"]) != 7 ||
		len(all.Input["tail.0"]) != 2 || len(all.Filter["grep.0"]) != 3 {
		t.Errorf("%s", body)
	}
	_, body = get(m, "/api/v1/metrics/prometheus")
	for _, want := range []string{"# TYPE fluentbit_output_proc_records_total counter\n", `fluentbit_output_proc_records_total{name="http.0"} 7` + "\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in\n%s", want, body)
		}
	}
	now = now.Add(90061 * time.Second)
	if _, body := get(m, "/api/v1/uptime"); !strings.Contains(body, `"uptime_sec":90061`) || !strings.Contains(body, "1 day, 1 hour, 1 minute and 1 second") {
		t.Errorf("%s", body)
	}
}

func TestOtherSitesAreRefused(t *testing.T) {
	now := time.Unix(1e9, 0)
	m, _ := site(&now)
	for _, edit := range [][]string{{"Host", "evil.example"}, {"Origin", "http://evil.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		if status, _ := get(m, "/api/v1/metrics", edit...); status != 403 {
			t.Errorf("%v: %d", edit, status)
		}
	}
	if status, _ := get(m, "/api/v1/nothing"); status != 404 {
		t.Errorf("an unknown path: %d", status)
	}
	if status, _ := get(m, "/api/v1/storage"); status != 404 {
		t.Errorf("storage.metrics is off: %d", status)
	}
}

func TestAReloadIsAnswered(t *testing.T) {
	now := time.Unix(1e9, 0)
	m, _ := site(&now)
	m.o.Reloads = func() int { return 3 }
	post := func() (int, string) {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("POST", "http://127.0.0.1/api/v2/reload", nil))
		return w.Code, w.Body.String()
	}
	if status, body := post(); status != 200 || body != `{"reload":"not enabled","status":-1}` {
		t.Errorf("not enabled: %d %s", status, body)
	}
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{nil, 200, `{"reload":"done","status":0}`},
		{ErrBusy, 400, `{"reload":"in progress","status":-2}`},
		{errors.New("f.conf:3: no"), 400, `{"error":"f.conf:3: no","reload":"refused","status":-3}`},
	} {
		m.o.Reload = func() error { return c.err }
		if status, body := post(); status != c.status || body != c.body {
			t.Errorf("%v: %d %s", c.err, status, body)
		}
	}
}
