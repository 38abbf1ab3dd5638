package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
)

// Sinks makes what delivers to an endpoint. An endpoint that must not be called
// is refused with an error that names the field below deliver.http. configured:
// the configuration names it, not the API.
type Sinks func(h *HTTP, configured bool) (connect.Sink, error)

// Options are what a door needs.
type Options struct {
	Engine *part.Engine
	Sinks  Sinks
	Log    *slog.Logger

	// LockMost makes each run of a polled inbox take a named lock, so that of
	// several servers one runs at a time; 0 = without. It ends after that, and so
	// does the run. Node is who has it.
	LockMost job.Millis
	Node     string
}

// Door knows the inboxes there are and delivers what they hold. Their settings
// are rows of the engine; here is what is in effect.
type Door struct {
	engine *part.Engine
	log    *slog.Logger
	o      Options

	changing sync.Mutex // held while an inbox is made, changed or deleted
	mu       sync.RWMutex
	inboxes  map[string]*Inbox
}

// Inbox is one of them, in effect.
type Inbox struct {
	Name string
	*Settings

	secret  bool   // its headers came out of references: they are not kept
	problem string // why it takes messages in and does not deliver; "" = it delivers
	outside bool   // for its problem it is not made: the engine knows nothing of it, and takes no message in
	courier *courier
}

// Named is an inbox of the configuration.
type Named struct {
	Name string
	*Settings
	Secret bool // a part came out of a reference such as ${env:NAME}
}

// New returns a door without inboxes.
func New(o Options) *Door {
	return &Door{engine: o.Engine, log: o.Log, o: o, inboxes: map[string]*Inbox{}}
}

// Start takes up the inboxes of the engine, and those of the configuration as
// it says, and begins to deliver. The engine has started.
func (d *Door) Start(ctx context.Context, configured []Named) error {
	if err := d.Configure(ctx, configured); err != nil {
		return err
	}
	rows, err := d.engine.Desk.Doors(ctx, job.DoorInbox)
	if err != nil {
		return fmt.Errorf("reading the inboxes: %w", err)
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	for _, row := range rows {
		if d.Get(row.Name) != nil {
			continue
		}
		s, err := readSettings(row.Body, true)
		if err != nil {
			return fmt.Errorf("the settings of inbox %q: %w", row.Name, err)
		}
		d.takeUp(ctx, row.Name, s)
	}
	return nil
}

// takeUp puts an inbox that the engine keeps in effect. One whose endpoint cannot be
// set up now takes messages in, and is taken up again with the next Configure.
func (d *Door) takeUp(ctx context.Context, name string, s *Settings) {
	x := &Inbox{Name: name, Settings: s}
	var sink connect.Sink
	var err error
	if s.lacks() {
		err = errors.New("a header of its endpoint stood in the configuration, which does not name it any more")
	} else {
		sink, err = d.sink(s, false)
	}
	if err != nil { // what may be called has changed, or a secret is gone
		x.problem = err.Error()
		d.log.ErrorContext(ctx, "an inbox takes messages in and does not deliver until what is in the way is gone and the configuration is read again, or it gets other settings",
			"inbox", name, "error", err)
	}
	d.begin(ctx, x, sink)
}

// Configure lets the settings of the configuration hold from now on, as far as
// they are not in effect already, takes up again what could not deliver, and reads
// again the secrets that headers name. One whose queue has other work is not made
// until that is gone.
func (d *Door) Configure(ctx context.Context, list []Named) error {
	d.mu.Lock()
	maps.DeleteFunc(d.inboxes, func(_ string, x *Inbox) bool { return x.outside })
	d.mu.Unlock()
	var outside []*Inbox
	for _, n := range list {
		x := &Inbox{Name: n.Name, Settings: n.Settings, secret: n.Secret}
		err := d.set(ctx, x, true, job.Actor{Name: "configuration"})
		if job.KindOf(err) == job.Exists {
			x.problem, x.outside = err.Error(), true
			outside = append(outside, x)
		} else if err != nil {
			return fmt.Errorf("configuring inbox %q: %w", n.Name, err)
		}
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	for _, x := range outside {
		d.log.ErrorContext(ctx, "an inbox of the configuration is not made, and takes no message in, until what is in the way is gone and the configuration is read again",
			"inbox", x.Name, "error", x.problem)
		d.begin(ctx, x, nil)
	}
	for _, x := range d.List() {
		if x.problem != "" && !x.outside {
			d.takeUp(ctx, x.Name, x.Settings)
		} else if x.problem == "" && x.refers() && !slices.ContainsFunc(list, func(n Named) bool { return n.Name == x.Name }) {
			d.renew(ctx, x)
		}
	}
	return nil
}

// renew gives an inbox that delivers the secrets that its headers name now. Where one
// cannot be read, it goes on with those it has.
func (d *Door) renew(ctx context.Context, x *Inbox) {
	old, ok := x.courier.sink.(interface{ Same(other connect.Sink) bool })
	if !ok {
		return
	}
	sink, err := d.sink(x.Settings, false)
	switch {
	case err != nil:
		d.log.WarnContext(ctx, "an inbox goes on with the secrets it has, as they cannot be read again", "inbox", x.Name, "error", err)
	case old.Same(sink):
		_ = sink.Close() // it was never used
	default:
		d.begin(ctx, &Inbox{Name: x.Name, Settings: x.Settings}, sink)
		d.log.InfoContext(ctx, "an inbox has the secrets that its headers name now", "inbox", x.Name)
	}
}

// Stop ends deliveries: what no endpoint has answered for goes back without
// blame. The engine works until it returns.
func (d *Door) Stop() {
	d.changing.Lock()
	defer d.changing.Unlock()
	list := d.List()
	for _, x := range list {
		x.courier.stop() // all of them, before one is waited for
	}
	for _, x := range list {
		x.courier.end()
	}
}

// Get returns an inbox, nil if there is none of that name.
func (d *Door) Get(name string) *Inbox {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.inboxes[name]
}

// Find is Get with a refusal.
func (d *Door) Find(name string) (*Inbox, error) {
	if x := d.Get(name); x != nil {
		return x, nil
	}
	return nil, job.Errorf(job.NotFound, "there is no inbox %s; PUT /inboxes/{name} makes one, or `inboxes` in the configuration", strconv.Quote(shorten(name)))
}

// List returns the inboxes by name.
func (d *Door) List() []*Inbox {
	d.mu.RLock()
	defer d.mu.RUnlock()
	list := make([]*Inbox, 0, len(d.inboxes))
	for _, name := range slices.Sorted(maps.Keys(d.inboxes)) {
		list = append(list, d.inboxes[name])
	}
	return list
}

// Stuck counts the inboxes that do not deliver, as their endpoint could not be set up.
func (d *Door) Stuck() (n int) {
	for _, x := range d.List() {
		if x.problem != "" {
			n++
		}
	}
	return n
}

// Set makes an inbox, or gives it other settings. Its mode changes only while
// no message waits.
func (d *Door) Set(ctx context.Context, name string, s *Settings, by job.Actor) error {
	return d.set(ctx, &Inbox{Name: name, Settings: s}, false, by)
}

func (d *Door) set(ctx context.Context, x *Inbox, configured bool, by job.Actor) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	if old := d.Get(x.Name); old != nil && old.problem == "" && string(old.Append(nil)) == string(x.Append(nil)) && (configured || !x.refers()) {
		return nil
	}
	sink, err := d.sink(x.Settings, configured)
	if err != nil {
		return err
	}
	row := job.DoorSetting{Door: job.DoorInbox, Name: x.Name, Body: x.kept()}
	if err := d.engine.Desk.SetDoor(ctx, row, x.Apply, masked, by); err != nil {
		if sink != nil {
			_ = sink.Close() // it was never used
		}
		return err
	}
	d.begin(ctx, x, sink)
	return nil
}

// Delete forgets an inbox that has no unfinished message.
func (d *Door) Delete(ctx context.Context, name string, by job.Actor) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	x, err := d.Find(name)
	if err == nil && !x.outside {
		err = d.engine.Desk.DropDoor(ctx, job.DoorInbox, name, by)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	delete(d.inboxes, name)
	d.mu.Unlock()
	x.courier.end()
	return nil
}

func (d *Door) sink(s *Settings, configured bool) (connect.Sink, error) {
	if s.HTTP == nil {
		return nil, nil
	}
	sink, err := d.o.Sinks(s.HTTP, configured)
	if bad, ok := errors.AsType[*job.Error](err); ok {
		field := strings.TrimSuffix("deliver.http."+bad.Field, ".")
		return nil, &job.Error{Kind: bad.Kind, Field: field, Text: field + ": " + bad.Text}
	}
	return sink, err
}

// kept is what the engine keeps of the settings.
func (x *Inbox) kept() []byte {
	if x.secret {
		return x.masked().Append(nil)
	}
	return x.Append(nil)
}

// begin puts an inbox in effect, in the place of what it was.
func (d *Door) begin(ctx context.Context, x *Inbox, sink connect.Sink) {
	x.courier = newCourier(d, x, sink)
	d.mu.Lock()
	old := d.inboxes[x.Name]
	d.inboxes[x.Name] = x
	d.mu.Unlock()
	if old != nil {
		old.courier.end()
	}
	if !x.outside {
		x.courier.start(ctx)
	}
}
