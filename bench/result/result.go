// Package result holds what was measured: the file that keeps it, its
// statistics, the comparison inside a durability class, and the document made
// of it. It measures nothing and knows no server.
package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"
)

// File is all that a set of runs found. It is saved after each of them.
type File struct {
	Started  time.Time `json:"started"`
	Machine  Machine   `json:"machine"`
	Settings Settings  `json:"settings"`
	Systems  []System  `json:"systems"`
	Runs     []Run     `json:"runs"`
}

// Settings are the options that figures depend on.
type Settings struct {
	Runs            int      `json:"runs"`
	Seconds         float64  `json:"seconds"`
	Backlog         int64    `json:"backlog_jobs"`
	Storm           int64    `json:"storm_jobs"`
	Rate            float64  `json:"latency_rate_per_s"`
	Connections     int      `json:"connections"`
	BulkConnections int      `json:"bulk_connections"`
	Payload         int      `json:"payload_bytes"`
	Phases          []string `json:"phases"`
}

// System is a server with one durability setting, as it was measured.
type System struct {
	Name       string `json:"name"`
	Class      string `json:"class"`
	ClassAbout string `json:"class_about"`
	Versions   string `json:"versions"`
	Durability string `json:"durability"`
	Bulk       string `json:"bulk"` // "API", "pipelined" or ""
	Workers    string `json:"workers"`
	Retry      string `json:"retry"`
	// Missing says why the system could not be installed; "" if it could.
	Missing string `json:"missing,omitempty"`
}

// Run is one pass of one system through all phases, on fresh directories.
type Run struct {
	System   string    `json:"system"`
	Number   int       `json:"run"` // from 1
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`
	Figures  []Figure  `json:"figures"`
	Checks   []Check   `json:"checks"`
	Failures []Failure `json:"failures,omitempty"`
}

// Figure is one measured value.
type Figure struct {
	Phase string  `json:"phase"`
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Cost  *Cost   `json:"cost,omitempty"`
}

// Cost is what the jobs behind a figure took from the machine, per 1,000 jobs.
type Cost struct {
	ServerCPU    float64 `json:"server_cpu_s"`
	WrittenBytes float64 `json:"server_written_bytes"`
	GeneratorCPU float64 `json:"generator_cpu_s"`
	// OtherShare is the part of all cores that went to neither. It is no
	// quantity per 1,000 jobs, but says how much the machine was disturbed.
	OtherShare float64 `json:"other_share"`
}

// Check is one comparison of counts that held. One that does not fails its
// phase.
type Check struct {
	Phase      string `json:"phase"`
	Enqueued   int64  `json:"enqueued"`
	Delivered  int64  `json:"delivered"`
	Duplicates int64  `json:"duplicates"`
	Left       int64  `json:"left"` // as the server counts
}

// Failure is a phase without figures, and why.
type Failure struct {
	Phase string `json:"phase"`
	Error string `json:"error"`
}

// Load reads a file; one that does not exist is an error of fs.ErrNotExist.
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &File{}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return f, nil
}

// Save replaces the file at path by f, never leaving half of it.
func (f *File) Save(path string) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	half := path + ".half"
	if err := os.WriteFile(half, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(half, path)
}

// Continue returns the file at path to add runs to, or fresh if there is none.
// Runs under other settings or on another machine do not belong together.
func Continue(path string, fresh *File) (*File, error) {
	f, err := Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(f.Settings, fresh.Settings) {
		return nil, fmt.Errorf("%s was made with other settings (%+v), these are %+v", path, f.Settings, fresh.Settings)
	}
	if f.Machine.name() != fresh.Machine.name() {
		return nil, fmt.Errorf("%s was made on another machine (%s), this is %s", path, f.Machine.name(), fresh.Machine.name())
	}
	return f, nil
}

// Has reports whether a run of a system is there.
func (f *File) Has(system string, number int) bool {
	for _, r := range f.Runs {
		if r.System == system && r.Number == number {
			return true
		}
	}
	return false
}

// SetSystem adds what is known of a system, or replaces it.
func (f *File) SetSystem(s System) {
	for i := range f.Systems {
		if f.Systems[i].Name == s.Name {
			f.Systems[i] = s
			return
		}
	}
	f.Systems = append(f.Systems, s)
}
