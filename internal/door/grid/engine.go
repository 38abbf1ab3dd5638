package grid

import (
	"errors"
	"maps"
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/wire"
)

// Bounds of what an engine says of itself.
const (
	propertiesMax     = 64
	propertyBytesMax  = 1 << 10
	runningMax        = 2 * job.SlotsMax
	stoppedMax        = job.SlotsMax
	propertyNameBytes = nameBytesMax
)

// Login reads the body of POST /engines, under the name that the engine is to
// have. Its error joins one for each problem.
func Login(ask wire.Login, name string) (grid.Login, error) {
	l := grid.Login{Name: name, Host: ask.Host, Slots: ask.Slots, Properties: maps.Clone(ask.Properties)}
	bad := []error{checkName("id", name)}
	if ask.Host != "" {
		bad = append(bad, checkName("host", ask.Host))
	}
	if ask.Slots < 1 || ask.Slots > job.SlotsMax {
		bad = append(bad, refuse("slots", "slots must be a whole number from 1 to %d: how many tasks the engine runs at once", job.SlotsMax))
	}
	if len(ask.Properties) > propertiesMax {
		bad = append(bad, refuse("properties", "properties must not be more than %d", propertiesMax))
	}
	for property, value := range ask.Properties {
		if property == "" || len(property) > propertyNameBytes || len(value) > propertyBytesMax {
			bad = append(bad, refuse("properties", "properties: the name %s must be of 1 to %d bytes and its value of at most %d", quote(property), propertyNameBytes, propertyBytesMax))
			break
		}
	}
	var err error
	l.Running, err = running(ask.Running)
	return l, errors.Join(append(bad, err)...)
}

// running reads what an engine has; nil = it does not say.
func running(list []wire.Running) ([]grid.Running, error) {
	if list == nil {
		return nil, nil
	}
	if len(list) > runningMax {
		return nil, refuse("running", "running must not be more than %d", runningMax)
	}
	out := make([]grid.Running, len(list))
	for i, w := range list {
		var err error
		if out[i], err = oneRunning(w, "running["+strconv.Itoa(i)+"]"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func oneRunning(w wire.Running, at string) (grid.Running, error) {
	id, err := job.ParseID(w.ID)
	if err != nil {
		return grid.Running{}, refuse(at+".id", "%s.id is no id of a task: %s", at, err)
	}
	token, err := job.ParseToken(w.Lease)
	if err != nil {
		return grid.Running{}, refuse(at+".lease", "%s.lease is no token: %s", at, err)
	}
	return grid.Running{ID: id, Token: token}, nil
}

// Heartbeat reads the body of POST /engines/{id}/heartbeat. Its error joins one for
// each problem.
func Heartbeat(ask *wire.Heartbeat) (grid.Beat, error) {
	b, stopped := grid.Beat{Epoch: ask.Epoch}, ask.Stopped
	var bad []error
	if ask.Epoch < 1 {
		bad = append(bad, refuse("epoch", "epoch must be that of the engine's login"))
	}
	if len(stopped) > stoppedMax {
		bad, stopped = append(bad, refuse("stopped", "stopped must not be more than %d", stoppedMax)), nil
	}
	b.Stopped = make([]job.Token, len(stopped))
	for i, text := range stopped {
		var err error
		if b.Stopped[i], err = job.ParseToken(text); err != nil {
			bad = append(bad, refuse("stopped", "stopped[%d] is no token: %s", i, err))
			break
		}
	}
	var err error
	b.Running, err = running(ask.Running)
	return b, errors.Join(append(bad, err)...)
}

// Heard answers a heartbeat.
func Heard(h grid.Heard) wire.Engine {
	out := EngineOf(h.EngineState)
	out.Stop = stops(h.Stop)
	return out
}

func stops(list []grid.Running) (out []wire.Running) {
	for _, s := range list {
		out = append(out, wire.Running{ID: s.ID.String(), Lease: string(s.Token.AppendTo(nil))})
	}
	return out
}

// LoggedIn answers a login. name is what the engine calls itself.
func LoggedIn(name string, in grid.LoggedIn) wire.LoggedIn {
	return wire.LoggedIn{
		ID: name, Epoch: in.Engine.Epoch, HeartbeatMS: int64(in.Heartbeat), LostAfterMS: int64(in.LostAfter), Stop: stops(in.Stop),
	}
}

// EngineOf tells of an engine.
func EngineOf(m grid.EngineState) wire.Engine {
	return wire.Engine{
		ID: m.Name, Host: m.Host, Slots: m.Slots, Running: m.Running, State: m.State, Epoch: m.Epoch,
		LoggedInAt: int64(m.LoggedIn), HeardAt: int64(m.Heard), Properties: m.Properties,
	}
}
