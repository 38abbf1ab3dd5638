package inbox

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/strict"
)

// Mode is what a batch does behind an error.
type Mode uint8

// The modes. ModeAll gives up order behind a failure.
const (
	ModeAll       Mode = iota // it goes on to its end
	ModeFailFirst             // it stops
	modes
)

var modeNames = [modes]string{"all", connect.FailFirst}

func (m Mode) String() string { return modeNames[m] }

// CapApplies is what the longest wait bounds.
type CapApplies uint8

// The choices; CapInterval is the default.
const (
	CapInterval CapApplies = iota // each wait
	CapAge                        // the age of the message, as the table of the seed has it
	capsEnd
)

var capNames = [capsEnd]string{"interval", "age"}

func (c CapApplies) String() string { return capNames[c] }

// Schedule is when something runs: the first time so long after the start,
// then each Interval. Interval 0 = never; of the delivery, as soon as something
// is due.
type Schedule struct{ InitialDelay, Interval job.Millis }

// Settings are those of an inbox, complete.
type Settings struct {
	Group   *Key
	Sort    Sort
	HTTP    *HTTP // nil = whoever leases
	Mode    Mode
	Query   Schedule
	Cleanup Schedule

	MaxRetries int // noted errors at which a message is exhausted
	PageSize   int // messages in memory at a time
	BatchSize  int // messages of a group in one run; -1 = all

	MaxBackoffMinutes int
	BackoffBase       float64
	CapApplies        CapApplies
	TTL               job.Millis // errors so long after the receipt are not noted; Unset = noted from the first on

	OnExhausted job.OnDead
}

// HTTP is an endpoint that takes messages.
type HTTP struct {
	URL        string
	Batch      bool // a request carries the messages of a turn, not one
	Headers    map[string]string
	Mask       []string // secrets of the configuration: not in what is kept of an answer. They are not stored
	Timeout    job.Millis
	Concurrent int // groups at a time
}

// Bounds of settings.
const (
	retriesMax    = 1_000_000
	pageMax       = 10_000
	batchMax      = rule.TurnMax
	backoffMax    = 365 * 24 * 60 // minutes
	baseMax       = 1000
	intervalLeast = 100 // milliseconds
	intervalMost  = 7 * job.Day
	ttlMost       = 365 * job.Day
	timeoutMost   = 10 * job.Minute
	concurrentMax = 1000
)

// defaults are those of the seed, where it names one.
func defaults() Settings {
	return Settings{
		Query:      Schedule{10 * job.Second, 6 * job.Second},
		Cleanup:    Schedule{job.Minute, job.Minute},
		MaxRetries: 100, PageSize: 100, BatchSize: -1,
		MaxBackoffMinutes: 180, BackoffBase: 2, TTL: job.Unset, OnExhausted: job.DeadBlock,
	}
}

// Ordered reports whether the messages of a group are delivered in order,
// through failures too (I7).
func (s *Settings) Ordered() bool { return s.Mode == ModeFailFirst }

// Sort is what puts the messages of a group in order.
type Sort struct {
	by     sortBy
	header string
}

type sortBy uint8

const (
	bySequence sortBy = iota
	byTimestamp
	byHeader
)

const sortHelp = "use sequence, timestamp, or header:NAME, where the header holds whole numbers"

func parseSort(text string) (Sort, error) {
	name, isHeader := strings.CutPrefix(text, "header:")
	switch {
	case text == "sequence":
		return Sort{}, nil
	case text == "timestamp":
		return Sort{by: byTimestamp}, nil
	case isHeader && wrongHeader(name) == "":
		return Sort{by: byHeader, header: canonical(name)}, nil
	case isHeader:
		return Sort{}, refuse("sort", "the header of sort "+wrongHeader(name))
	}
	return Sort{}, refuse("sort", "sort must not be "+strconv.Quote(shorten(text))+"; "+sortHelp)
}

func (s Sort) String() string {
	return [...]string{"sequence", "timestamp", "header:" + s.header}[s.by]
}

func refuse(field, text string) *job.Error {
	return &job.Error{Kind: job.Invalid, Field: field, Text: text}
}

func shorten(s string) string { return strict.Shorten(s, 100) }

// Apply gives a queue what the settings of its inbox say in the engine's words.
// Whether it is paused or held stays.
func (s *Settings) Apply(q *job.Queue) error {
	q.Order, q.Concurrency, q.Turns = job.OrderStart, 1, true
	if s.Ordered() {
		q.Order = job.OrderStrict
	}
	if q.Protection.Fair == nil { // every group with something due is visited in turn
		q.Protection.Fair = &job.FairShare{}
	}
	q.OnDead, q.Retry, q.AgeCap = s.OnExhausted, s.policy(), 0
	if s.CapApplies == CapAge {
		q.AgeCap = s.longest()
	}
	q.OnFull = job.FullReject // a group that loses its oldest has lost its order
	q.GraceDelay = 0
	if s.Query.Interval > 0 { // at once: a run visits a group once, so it is tried in the next one, however late in the interval it failed
		q.GraceDelay = 1
	}
	return nil
}

// policy is what happens to a message behind an error that is noted. M noted
// errors exhaust it: the last of them is the one that no retry follows.
func (s *Settings) policy() job.Retry {
	curve := &job.Curve{Kind: job.CurveExponential, Unit: job.Minute, Factor: s.BackoffBase}
	if s.CapApplies == CapInterval {
		curve.Cap = s.longest()
	}
	return job.Retry{Limit: job.LimitOf(uint32(s.MaxRetries - 1)), Curve: curve}
}

func (s *Settings) longest() job.Millis { return job.Millis(s.MaxBackoffMinutes) * job.Minute }

// mask stands in the place of a value that is not shown: headers of an endpoint
// may hold what lets somebody in.
const mask = "********"

// masked are the settings as they are shown.
func (s *Settings) masked() *Settings {
	if s.HTTP == nil || len(s.HTTP.Headers) == 0 {
		return s
	}
	shown, http := *s, *s.HTTP
	http.Headers = make(map[string]string, len(s.HTTP.Headers))
	for name := range s.HTTP.Headers {
		http.Headers[name] = mask
	}
	shown.HTTP = &http
	return &shown
}

// masked is what may be shown of settings that are kept.
func masked(body []byte) string {
	s, err := readSettings(body, true)
	if err != nil {
		return err.Error()
	}
	return string(s.masked().Append(nil))
}

// lacks reports whether a secret of the endpoint is not known: it stood in the
// configuration, which does not name the inbox any more.
func (s *Settings) lacks() bool {
	return s.hasHeader(func(value string) bool { return value == mask })
}

// refers reports whether a header names a secret, if the API set it: what that is
// may have changed.
func (s *Settings) refers() bool {
	return s.hasHeader(func(value string) bool { return strings.Contains(value, "${") })
}

func (s *Settings) hasHeader(is func(value string) bool) bool {
	return s.HTTP != nil && slices.ContainsFunc(slices.Collect(maps.Values(s.HTTP.Headers)), is)
}
