package grid

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

// Config is what the broker decides: the part `grid` of the configuration.
type Config struct {
	Profile  job.Profile
	Defaults Given            // of every session
	Services map[string]Given // of the sessions of a service type

	HeartbeatInterval job.Millis // asked of engines
	LostAfter         job.Millis // an engine is lost after so long without a sign of life
	BlackHoles        *bool      // look for engines that fail everything in no time; nil = with the profile modern
	TaskBytesMax      int64      // of the payload of one task
}

// DefaultConfig is what applies where nobody says anything.
func DefaultConfig() Config {
	return Config{
		Profile: job.ProfileSeed, HeartbeatInterval: grid.EngineHeartbeat, LostAfter: grid.EngineLostAfter, TaskBytesMax: 1 << 20,
	}
}

// Holes are the rules by which engines are looked at, nil if they are not.
func (c *Config) Holes() *job.BlackHoles {
	looks := c.Profile == job.ProfileModern
	if c.BlackHoles != nil {
		looks = *c.BlackHoles
	}
	if !looks {
		return nil
	}
	holes := job.DefaultBlackHoles()
	return &holes
}

// BrokerSetting is one setting of the broker, for documentation.
type BrokerSetting struct{ Name, Shape, Default, Help string }

// BrokerSettings are those of the part `grid` beside defaults and services.
var BrokerSettings = []BrokerSetting{
	{"profile", "seed or modern", "seed", "the values of options that nobody chose"},
	{"heartbeat_interval", "a span of time", "5s", "how often an engine says that it is alive; engines are told at their login"},
	{"lost_after", "a span of time", "15s", "an engine that was silent so long is lost; more than heartbeat_interval"},
	{"black_holes", "true or false", "true with the profile modern", "an engine that fails task after task in no time gets nothing for a while, whatever session they are of"},
	{"task_bytes_max", "a whole number of bytes", "1048576", "largest payload of a task; a result may be as large as a request (--body-max)"},
}

// bytesMost bounds task_bytes_max: a payload is one value of the store.
const bytesMost = wire.BodyBytesMax

// ReadConfig reads the part `grid` of the configuration, as JSON. What is wrong
// is told together, each with its field below "grid".
func ReadConfig(body []byte) (Config, error) {
	c := DefaultConfig()
	var top map[string]jsontext.Value
	if err := json.Unmarshal(body, &top); err != nil {
		return c, refuse("grid", "grid must be keys with settings")
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(top)) {
		if err := c.set(name, top[name]); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) == 0 && c.LostAfter <= c.HeartbeatInterval {
		problems = append(problems, refuse("grid.lost_after", "grid.lost_after %s must be longer than grid.heartbeat_interval %s", c.LostAfter, c.HeartbeatInterval))
	}
	return c, errors.Join(problems...)
}

func (c *Config) set(name string, v jsontext.Value) error {
	field := "grid." + name
	var err error
	switch name {
	case "profile":
		var text string
		if json.Unmarshal(v, &text) != nil {
			return refuse(field, "%s must be seed or modern", field)
		}
		if c.Profile, err = job.ParseProfile(text); err != nil {
			return refuse(field, "%s must be seed or modern, not %s", field, quote(text))
		}
		return nil
	case "heartbeat_interval":
		c.HeartbeatInterval, err = readSpan(v)
		if err == nil && c.HeartbeatInterval < 100 {
			return refuse(field, "%s must be at least 100ms", field)
		}
	case "lost_after":
		c.LostAfter, err = readSpan(v)
	case "black_holes":
		var is bool
		if json.Unmarshal(v, &is) != nil || v.Kind() == 'n' {
			return refuse(field, "%s must be true or false", field)
		}
		c.BlackHoles = &is
	case "task_bytes_max":
		c.TaskBytesMax, err = readWhole(v, 1, bytesMost)
	case "defaults":
		return c.options(field, v, &c.Defaults)
	case "services":
		return c.services(field, v)
	default:
		return refuse(field, "grid.%s%s", short(name), noSetting(name, v))
	}
	if err != nil {
		return wrongValue(field, err)
	}
	return nil
}

// noSetting says what somebody meant who gave a value to a setting of the broker
// that there is not.
func noSetting(name string, v jsontext.Value) string {
	var names []string
	for _, s := range BrokerSettings {
		names = append(names, s.Name)
	}
	names = append(names, "defaults", "services")
	there, ok := spell.Find(gridServer, name)
	option := meantOf(Options, name, func(o Option) string { return o.Name })
	switch exact := option != nil && spell.Fold(option.Name) == spell.Fold(name); {
	case exact && !ok:
		return " is an option of sessions; write it below grid.defaults: " + option.Name + ": " + string(v)
	case ok && there.Here != "" && !strings.HasPrefix(there.Here, "grid."):
		return there.Answer(string(v)) + ", below grid.defaults"
	case ok:
		return there.Answer(string(v))
	}
	hint := spell.Hint(name, names)
	if hint == "" && option != nil {
		hint = "; did you mean the option " + option.Name + ", below grid.defaults?"
	}
	return " is not known; there are " + strings.Join(names, ", ") + hint
}

// options reads those of one level, and whether they can be resolved at all.
func (c *Config) options(field string, v jsontext.Value, into *Given) error {
	if err := json.Unmarshal(v, into); err != nil || v.Kind() != '{' && v.Kind() != 'n' {
		return refuse(field, "%s must be options with their values", field)
	}
	return into.Check(field)
}

func (c *Config) services(field string, v jsontext.Value) error {
	var list map[string]jsontext.Value
	if err := json.Unmarshal(v, &list); err != nil {
		return refuse(field, "%s must be names of service types with their options", field)
	}
	c.Services = make(map[string]Given, len(list))
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if why := job.WrongName(name, nameBytesMax); why != "" {
			problems = append(problems, refuse(field, "%s: the name %s %s", field, quote(name), why))
			continue
		}
		var given Given
		if err := c.options(field+"."+name, list[name], &given); err != nil {
			problems = append(problems, err)
		}
		c.Services[name] = given
	}
	return errors.Join(problems...)
}

// Check resolves what the configuration says, as a session without options of
// its own would be: what contradicts itself is told at the start.
func (c *Config) Check() error {
	broker := said{"grid.defaults", c.Defaults}
	_, _, err := resolve(c.Profile, broker)
	problems := []error{err}
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		_, _, err := resolve(c.Profile, broker, said{"grid.services." + name, c.Services[name]})
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
