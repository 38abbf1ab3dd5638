package grid

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/wire"
)

// info is what this door keeps with a session: what was asked for, and every
// option as it was when the session was opened. A change of the configuration
// changes nothing about sessions that are open.
type info struct {
	Service string           `json:"service,omitempty"`
	Given   Given            `json:"given,omitempty"`
	Options map[string]shown `json:"options"`
}

// shown is an option with who chose it.
type shown struct {
	Value jsontext.Value `json:"value"`
	From  string         `json:"from"`
}

// Open reads the body of POST /sessions. Options that it does not name are
// resolved here, once. Its error joins one for each problem.
func (c *Config) Open(ask *wire.OpenSession) (grid.NewSession, error) {
	var n grid.NewSession
	var badName, badService error
	if ask.ID != "" {
		badName = checkName("id", ask.ID)
	}
	service, known := c.Services[ask.Service]
	if ask.Service != "" && !known {
		badService = refuse("service", "service %s is not known; the broker's configuration names those there are (grid.services)", quote(ask.Service))
	}
	own := given(ask.Options)
	q, from, err := Resolve(c.Profile, c.Defaults, service, own)
	if err = errors.Join(badName, badService, err); err != nil {
		return n, err
	}
	if q.NonIdempotent && copiesOf(q).Strategies != 0 {
		changeCopies(q, func(r *job.Redundancy) { r.Strategies = 0 })
	}
	q.Name = ask.ID
	kept := info{Service: ask.Service, Given: own, Options: make(map[string]shown, len(Options))}
	for i := range Options {
		value, err := json.Marshal(Options[i].show(q))
		if err != nil {
			return n, fmt.Errorf("the value of %s: %w", Options[i].Name, err)
		}
		kept.Options[Options[i].Name] = shown{value, from[Options[i].Name].String()}
	}
	settle(q)
	n.Queue = *q
	n.Info, err = json.Marshal(&kept, json.Deterministic(true))
	return n, err
}

// given are options of a body. Spaces in a value mean nothing.
func given[T ~[]byte](options map[string]T) Given {
	if len(options) == 0 {
		return nil
	}
	g := make(Given, len(options))
	for name, value := range options {
		own := jsontext.Value(bytes.Clone(value))
		_ = own.Compact() // what was just read is well formed
		g[name] = own
	}
	return g
}

// Same reports whether a session was opened by the same request: then opening it
// again finds it.
func Same(n grid.NewSession, s grid.SessionState) bool {
	was, ok := infoOf(s)
	is, too := infoOf(grid.SessionState{Session: &job.Session{Info: n.Info}})
	if !ok || !too || was.Service != is.Service || len(was.Given) != len(is.Given) {
		return false
	}
	for name, value := range is.Given {
		if !bytes.Equal(was.Given[name], value) {
			return false
		}
	}
	return true
}

func infoOf(s grid.SessionState) (i info, ok bool) {
	return i, json.Unmarshal(s.Info, &i) == nil
}

// fixed are the options that stay as they were when the session was opened.
var fixed = []string{"collection"}

// WrongChange joins what is wrong with a change of any session.
func WrongChange(ask *wire.ChangeSession) error {
	own := given(ask.Options)
	if len(own) == 0 && ask.Suspend == nil {
		return refuse("options", "options or suspend is missing: name what is to change")
	}
	bad := []error{own.Check("options")}
	for _, name := range fixed {
		if _, there := own[name]; there {
			bad = append(bad, refuse("options."+name, "options.%s cannot change while a session is open; open another session", name))
		}
	}
	return errors.Join(bad...)
}

// Change reads the body of PATCH /sessions/{id}, for a session as it is. What it
// returns may be called more than once.
func Change(ask wire.ChangeSession, s grid.SessionState) (func(*job.Queue) error, error) {
	if err := WrongChange(&ask); err != nil {
		return nil, err
	}
	own := given(ask.Options)
	return func(q *job.Queue) error {
		if ask.Suspend != nil {
			q.Grid.Suspended = *ask.Suspend
		}
		if kept, ok := infoOf(s); ok {
			kept.house(q)
		}
		from := Origins{}
		err := own.over(q, from, FromSession, "options")
		if err == nil {
			err = contradictions(q, from, "options")
		}
		settle(q)
		return err
	}, nil
}

// SessionOf tells of a session; whole with its options, each with who chose it.
// What was changed since it was opened is the session's.
func SessionOf(s grid.SessionState, whole bool) wire.Session {
	kept, _ := infoOf(s) // what cannot be read says nothing
	d := &s.Depth.States
	out := wire.Session{
		ID: s.Name, Service: kept.Service, State: s.State.String(), Why: s.Why,
		CreatedAt: int64(s.Created), ClosedAt: int64(s.Closed), EndedAt: int64(s.Ended),
		Tasks: wire.TaskCounts{
			Submitted: s.Submitted, Waiting: d[job.Ready] + d[job.Scheduled], Active: d[job.Leased],
			Completed: s.Done, Failed: s.Failed, Cancelled: s.Cancelled,
		},
		Collected: s.Collected, Share: s.Share, Stalled: s.Stalled, ClientUntil: int64(s.ClientUntil),
	}
	g := s.Settings.Grid
	if g == nil {
		return out
	}
	out.Profile, out.Suspended = g.Profile.String(), g.Suspended
	if !whole {
		return out
	}
	out.Excluded = excludedBy(s)
	out.Options = make(map[string]wire.Option, len(Options))
	for i := range Options {
		o := &Options[i]
		value, err := json.Marshal(o.show(s.Settings))
		if err != nil {
			continue // a word, a number or a bool has a form
		}
		told, from := kept.Options[o.Name], FromSession.String()
		if homeless(s.Settings, o.Name) && told.From != "" {
			value = told.Value // it is kept nowhere else
		}
		if bytes.Equal(told.Value, value) {
			from = told.From
		}
		out.Options[o.Name] = wire.Option{Value: value, From: from}
	}
	return out
}

// house gives a session a place for the options that have none, with the values
// that they had when it was opened.
func (i *info) house(q *job.Queue) {
	without := *q
	g := *q.Grid
	without.Grid = &g
	for at := range Options {
		if o := &Options[at]; homeless(&without, o.Name) && i.Options[o.Name].Value != nil {
			_ = o.read(q, i.Options[o.Name].Value) // it was written by show
		}
	}
}
