// Package monitor serves what Fluent Bit's own HTTP server says of a pipeline, under the
// same paths and names: counters, storage, health (pipeline.md, decision 10).
package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/door/pipeline"
	"github.com/reprisehq/reprise/internal/trust"
)

// Options are the settings of the service section.
type Options struct {
	Pipeline *pipeline.Pipeline
	Version  string
	Now      func() time.Time

	Storage bool   // storage.metrics
	Health  bool   // health_check: serve /api/v1/health
	Limits  Limits // of what is healthy

	Reload  func() error // reads the configuration again, ErrBusy if that goes on already; nil = it is not enabled
	Reloads func() int   // how often that was done

	AllowHosts map[string]bool // further names of this server, in lower case
}

// Limits are how much may go wrong within a period: more is unhealthy.
type Limits struct {
	Errors, GivenUp int64
	Seconds         int // hc_period
}

// Monitor is a handler.
type Monitor struct {
	o     Options
	began time.Time
	mux   *http.ServeMux

	mu      sync.Mutex
	samples []sample // one a second, the oldest first
}

// sample is what all outputs counted up to a second.
type sample struct{ errors, givenUp int64 }

// New makes a handler. Sample is to be called once a second.
func New(o Options) *Monitor {
	m := &Monitor{o: o, began: o.Now(), mux: http.NewServeMux()}
	for path, tell := range map[string]func() any{
		"/{$}":            m.about,
		"/api/v1/uptime":  m.uptime,
		"/api/v1/plugins": m.plugins,
		"/api/v1/metrics": m.metrics,
	} {
		m.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, tell()) })
	}
	for _, path := range []string{"/api/v1/metrics/prometheus", "/api/v2/metrics", "/api/v2/metrics/prometheus"} {
		m.mux.HandleFunc("GET "+path, m.prometheus)
	}
	if o.Storage {
		m.mux.HandleFunc("GET /api/v1/storage", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, m.storage()) })
	}
	if o.Health {
		m.mux.HandleFunc("GET /api/v1/health", m.health)
	}
	m.mux.HandleFunc("GET /api/v2/health", m.healthInWords)
	m.mux.HandleFunc("POST /api/v2/reload", m.reload)
	m.mux.HandleFunc("PUT /api/v2/reload", m.reload)
	m.mux.HandleFunc("GET /api/v2/reload", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, object{"hot_reload_count": o.Reloads()})
	})
	return m
}

// ServeHTTP implements http.Handler.
func (m *Monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !trust.Trusted(r, func(name string) bool { return m.o.AllowHosts[name] }) {
		http.Error(w, "refused: this request names a host that is not this server, or comes from another site's page", http.StatusForbidden)
		return
	}
	m.mux.ServeHTTP(w, r)
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, what any) {
	text, err := json.Marshal(what)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // who asked is gone
}

type object map[string]any

func (m *Monitor) about() any {
	return object{"fluent-bit": object{"version": m.o.Version, "edition": "Reprise", "flags": []string{}}}
}

func (m *Monitor) uptime() any {
	sec := int64(m.o.Now().Sub(m.began) / time.Second)
	text := fmt.Sprintf("Fluent Bit has been running:  %d day, %d hour, %d minute and %d second", sec/86400, sec/3600%24, sec/60%60, sec%60)
	return object{"uptime_sec": sec, "uptime_hr": text}
}

func (m *Monitor) plugins() any {
	p := m.o.Pipeline
	inputs, filters, outputs := []string{}, []string{}, []string{}
	for _, x := range p.Inputs {
		inputs = append(inputs, x.Name)
	}
	for _, x := range p.Filters {
		filters = append(filters, x.Name)
	}
	for _, x := range p.Outputs {
		outputs = append(outputs, x.Name)
	}
	return object{"plugins": object{"inputs": inputs, "filters": filters, "outputs": outputs}}
}

// counter is a figure of an input, a filter or an output.
type counter struct {
	name  string
	value int64
}

func ofInput(x *pipeline.Input) []counter {
	return []counter{{"records", x.Count.Records.Load()}, {"bytes", x.Count.Bytes.Load()}}
}

func ofFilter(x *pipeline.Filter) []counter {
	c := &x.Count
	return []counter{{"records", c.Records.Load()}, {"drop_records", c.Dropped.Load()}, {"add_records", c.Added.Load()}}
}

func ofOutput(x *pipeline.Output) []counter {
	c := &x.Count
	return []counter{
		{"proc_records", c.Records.Load()},
		{"proc_bytes", c.Bytes.Load()},
		{"errors", c.Errors.Load()},
		{"retries", c.Retries.Load()},
		{"retries_failed", c.GivenUp.Load()},
		{"dropped_records", c.Dropped.Load()},
		{"retried_records", c.Retried.Load()},
	}
}

// each calls f with the counters of everything.
func (m *Monitor) each(f func(kind, name string, list []counter)) {
	p := m.o.Pipeline
	for _, x := range p.Inputs {
		f("input", x.Name, ofInput(x))
	}
	for _, x := range p.Filters {
		f("filter", x.Name, ofFilter(x))
	}
	for _, x := range p.Outputs {
		f("output", x.Name, ofOutput(x))
	}
}

func (m *Monitor) metrics() any {
	all := object{"input": object{}, "filter": object{}, "output": object{}}
	m.each(func(kind, name string, list []counter) {
		o := object{}
		for _, c := range list {
			o[c.name] = c.value
		}
		all[kind].(object)[name] = o
	})
	return all
}

func (m *Monitor) prometheus(w http.ResponseWriter, _ *http.Request) {
	series := map[string]*bytes.Buffer{}
	var names []string
	m.each(func(kind, name string, list []counter) {
		for _, c := range list {
			full := "fluentbit_" + kind + "_" + c.name + "_total"
			if series[full] == nil {
				series[full] = &bytes.Buffer{}
				names = append(names, full)
			}
			fmt.Fprintf(series[full], "%s{name=%q} %d\n", full, name, c.value)
		}
	})
	var text bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&text, "# TYPE %s counter\n", name)
		text.Write(series[name].Bytes())
	}
	fmt.Fprintf(&text, "# TYPE fluentbit_uptime counter\nfluentbit_uptime %d\n", int64(m.o.Now().Sub(m.began)/time.Second))
	fmt.Fprintf(&text, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", m.began.Unix())
	fmt.Fprintf(&text, "# TYPE fluentbit_build_info gauge\nfluentbit_build_info{version=%q,edition=\"Reprise\"} 1\n", m.o.Version)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write(text.Bytes()) // who asked is gone
}

// storage tells what waits. All chunks are on disk, and none is mapped in memory.
func (m *Monitor) storage() any {
	inputs, chunks := object{}, 0
	for _, in := range m.o.Pipeline.Inputs {
		h := m.o.Pipeline.Held(in)
		chunks += h.Chunks
		inputs[in.Name] = object{
			"status": object{
				"overlimit": in.Most > 0 && h.Bytes >= in.Most, "mem_size": strconv.FormatInt(h.Bytes, 10) + "b", "mem_limit": strconv.FormatInt(in.Most, 10) + "b",
			},
			"chunks": object{"total": h.Chunks, "up": 0, "down": h.Chunks, "busy": h.Busy, "busy_size": "0b"},
		}
	}
	return object{
		"storage_layer": object{"chunks": object{"total_chunks": chunks, "mem_chunks": 0, "fs_chunks": chunks, "fs_chunks_up": 0, "fs_chunks_down": chunks}},
		"input_chunks":  inputs,
	}
}

// Sample notes what all outputs counted up to now.
func (m *Monitor) Sample() {
	var s sample
	for _, o := range m.o.Pipeline.Outputs {
		s.errors += o.Count.Errors.Load()
		s.givenUp += o.Count.GivenUp.Load()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.samples = append(m.samples, s); len(m.samples) > m.o.Limits.Seconds {
		m.samples = m.samples[1:]
	}
}

// healthy reports whether no more went wrong within the period than may; and how much.
func (m *Monitor) healthy() (ok bool, wrong sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.samples) > 0 {
		first, last := m.samples[0], m.samples[len(m.samples)-1]
		wrong = sample{last.errors - first.errors, last.givenUp - first.givenUp}
	}
	return wrong.errors <= m.o.Limits.Errors && wrong.givenUp <= m.o.Limits.GivenUp, wrong
}

func (m *Monitor) health(w http.ResponseWriter, _ *http.Request) {
	status, text := http.StatusOK, "ok\n"
	if ok, _ := m.healthy(); !ok {
		status, text = http.StatusInternalServerError, "error\n"
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // who asked is gone
}

func (m *Monitor) healthInWords(w http.ResponseWriter, _ *http.Request) {
	ok, wrong := m.healthy()
	status, text := http.StatusOK, "ok"
	if !ok {
		status, text = http.StatusInternalServerError, "error"
	}
	answer(w, status, object{
		"status": text, "errors": wrong.errors, "retries_failed": wrong.givenUp,
		"error_limit": m.o.Limits.Errors, "retry_failure_limit": m.o.Limits.GivenUp, "period_limit": m.o.Limits.Seconds,
	})
}

// ErrBusy says that the configuration is being read again already.
var ErrBusy = errors.New("the configuration is being read again already")

// reload answers before the configuration is in effect, because the server that answers
// begins anew with it. That ends in bounded time; a configuration that cannot run is told.
func (m *Monitor) reload(w http.ResponseWriter, _ *http.Request) {
	if m.o.Reload == nil {
		answer(w, http.StatusOK, object{"reload": "not enabled", "status": -1})
		return
	}
	switch err := m.o.Reload(); {
	case errors.Is(err, ErrBusy):
		answer(w, http.StatusBadRequest, object{"reload": "in progress", "status": -2})
	case err != nil:
		answer(w, http.StatusBadRequest, object{"reload": "refused", "status": -3, "error": err.Error()})
	default:
		answer(w, http.StatusOK, object{"reload": "done", "status": 0})
	}
}
