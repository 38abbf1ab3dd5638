package grid

import (
	"maps"
	"strconv"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
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
// have.
func Login(ask wire.Login, name string) (engine.Login, error) {
	l := engine.Login{Name: name, Host: ask.Host, Slots: ask.Slots, Properties: maps.Clone(ask.Properties)}
	if err := checkName("id", name); err != nil {
		return l, err
	}
	if ask.Host != "" {
		if err := checkName("host", ask.Host); err != nil {
			return l, err
		}
	}
	if ask.Slots < 1 || ask.Slots > job.SlotsMax {
		return l, refuse("slots", "slots must be a whole number from 1 to %d: how many tasks the engine runs at once", job.SlotsMax)
	}
	if len(ask.Properties) > propertiesMax {
		return l, refuse("properties", "properties must not be more than %d", propertiesMax)
	}
	for property, value := range ask.Properties {
		if property == "" || len(property) > propertyNameBytes || len(value) > propertyBytesMax {
			return l, refuse("properties", "properties: the name %s must be of 1 to %d bytes and its value of at most %d", quote(property), propertyNameBytes, propertyBytesMax)
		}
	}
	if len(ask.Running) > runningMax {
		return l, refuse("running", "running must not be more than %d", runningMax)
	}
	for i, w := range ask.Running {
		one, err := running(w, "running["+strconv.Itoa(i)+"]")
		if err != nil {
			return l, err
		}
		l.Running = append(l.Running, one)
	}
	return l, nil
}

func running(w wire.Running, at string) (engine.Running, error) {
	id, err := job.ParseID(w.ID)
	if err != nil {
		return engine.Running{}, refuse(at+".id", "%s.id is no id of a task: %s", at, err)
	}
	token, err := job.ParseToken(w.Lease)
	if err != nil {
		return engine.Running{}, refuse(at+".lease", "%s.lease is no token: %s", at, err)
	}
	return engine.Running{ID: id, Token: token}, nil
}

// Stopped reads the tokens of a heartbeat.
func Stopped(ask wire.Heartbeat) ([]job.Token, error) {
	if ask.Epoch < 1 {
		return nil, refuse("epoch", "epoch must be that of the engine's login")
	}
	if len(ask.Stopped) > stoppedMax {
		return nil, refuse("stopped", "stopped must not be more than %d", stoppedMax)
	}
	list := make([]job.Token, len(ask.Stopped))
	for i, text := range ask.Stopped {
		var err error
		if list[i], err = job.ParseToken(text); err != nil {
			return nil, refuse("stopped", "stopped[%d] is no token: %s", i, err)
		}
	}
	return list, nil
}

// LoggedIn answers a login. name is what the engine calls itself.
func LoggedIn(name string, in engine.LoggedIn) wire.LoggedIn {
	out := wire.LoggedIn{
		ID: name, Epoch: in.Machine.Epoch, HeartbeatMS: int64(in.Heartbeat), LostAfterMS: int64(in.LostAfter),
	}
	for _, s := range in.Stop {
		out.Stop = append(out.Stop, wire.Running{ID: s.ID.String(), Lease: string(s.Token.AppendTo(nil))})
	}
	return out
}

// EngineOf tells of an engine.
func EngineOf(m engine.MachineState) wire.Engine {
	return wire.Engine{
		ID: m.Name, Host: m.Host, Slots: m.Slots, Running: m.Running, State: m.State, Epoch: m.Epoch,
		LoggedInAt: int64(m.LoggedIn), HeardAt: int64(m.Heard), Properties: m.Properties,
	}
}
