// Package metrics shows what the engine and the HTTP door have counted, in the
// text format of Prometheus. It counts nothing of the engine's itself: a scrape
// copies what is there (meter.Measure), so what is not scraped costs nothing.
//
// Label sets are bounded: queues by a setting, all others by lists in the code.
// No job type, id, group or worker is ever a label, so no session is either.
package metrics

import (
	"context"
	"math"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/meter"
)

// Other is the label of all queues that have none of their own. A queue that is
// called so is counted with them.
const Other = "_other"

// Sessions is the label of all sessions of the grid together: their names are
// ids. A queue that is called so is counted with them.
const Sessions = "_grid"

// scrapeMax is the most time one scrape takes.
const scrapeMax = 10 * time.Second

// Metrics is the page of one server.
type Metrics struct {
	page    http.Handler
	all     *prometheus.Registry
	latency *prometheus.HistogramVec
	refused *prometheus.CounterVec
}

// New returns the metrics of an engine.
func New(e *part.Engine, version string) *Metrics {
	m := &Metrics{
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "reprise_http_request_seconds",
			Help: "Time from the headers of a request to the end of its answer, by class of call; streams are left out.",
			Buckets: []float64{
				.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30,
			},
		}, []string{"class"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "reprise_http_refused_total",
			Help: "Requests that were refused, by the code of the error.",
		}, []string{"code"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "reprise_build_info", Help: "1, with the version as a label.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	build.Set(1)
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{e}, m.latency, m.refused, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.all = r
	m.page = promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: scrapeMax})
	return m
}

// ServeHTTP implements http.Handler: the page.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.page.ServeHTTP(w, r) }

// Crowd is what the listeners count of connections (httpapi.Crowd).
type Crowd interface {
	Open() int      // now
	Refused() int64 // so far, because there were too many
}

// Connections adds what the listeners count. It is called at most once.
func (m *Metrics) Connections(c Crowd) {
	m.all.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "reprise_connections", Help: "Open connections of all listeners.",
		}, func() float64 { return float64(c.Open()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "reprise_connections_refused_total", Help: "Connections refused because there were too many, of all or from one address.",
		}, func() float64 { return float64(c.Refused()) }))
}

// Inboxes adds how many inboxes do not deliver. It is called at most once.
func (m *Metrics) Inboxes(stuck func() int) {
	m.all.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "reprise_inboxes_not_delivering", Help: "Inboxes whose endpoint could not be set up.",
	}, func() float64 { return float64(stuck()) }))
}

// Answered notes how long a call took. Classes are from a fixed list.
func (m *Metrics) Answered(class string, took time.Duration) {
	m.latency.WithLabelValues(class).Observe(took.Seconds())
}

// Refused notes an error that was answered.
func (m *Metrics) Refused(code string) { m.refused.WithLabelValues(code).Inc() }

// collector turns meter.Measures into samples.
type collector struct{ engine *part.Engine }

type kind = prometheus.ValueType

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("reprise_"+name, help, labels, nil)
}

var (
	jobsNow     = desc("queue_jobs", "Jobs in the store, by queue and state.", "queue", "state")
	bytesNow    = desc("queue_bytes", "Payload bytes of unfinished jobs, by queue.", "queue")
	runningNow  = desc("queue_leases", "Live leases, by queue.", "queue")
	oldestNow   = desc("queue_oldest_ready_seconds", "How long the longest waiting of the oldest ready jobs has waited, by queue; 0 = none is ready.", "queue")
	oldestState = desc("queue_oldest_seconds", "Age of the oldest job, by queue and state, since it was taken in; 0 = there is none.", "queue", "state")
	turnLatency = desc("turn_latency_seconds", "Time from when a job of a queue whose groups are given out in turns was taken in until it was done, by queue.", "queue")
	turnTries   = desc("turn_attempts", "At the how-manieth charged attempt such a job was done (outcome done), or after how many it was given up (exhausted), by queue.", "queue", "outcome")
	turnJobs    = desc("queue_turn_jobs", "Jobs of a queue whose groups are given out in turns, such as an inbox, by status; they add up.", "queue", "status")
	turnOldest  = desc("queue_turn_oldest_seconds", "Age of the oldest job of a queue whose groups are given out in turns, by status, since it was taken in; 0 = there is none.", "queue", "status")
	turnGroups  = desc("queue_turn_groups", "Groups of such a queue by condition, such as blocked; they add up.", "queue", "condition")
	pausedNow   = desc("queue_paused", "1 while the queue is paused.", "queue")
	heldNow     = desc("queue_held", "1 while the queue is held until a date.", "queue")
	breakerNow  = desc("queue_breaker", "1 for the state the breaker of the queue is in, of those that are not simply closed.", "queue", "state")
	enqueued    = desc("enqueued_total", "Jobs taken in, by queue.", "queue")
	taken       = desc("taken_total", "Jobs given to holders, by queue.", "queue")
	settled     = desc("settled_total", "Attempts ended by their holders, by queue and outcome.", "queue", "outcome")
	retries     = desc("retries_total", "Failed attempts after which the job runs again, by queue and reason.", "queue", "reason")
	ended       = desc("leases_ended_total", "Leases that ended without their holder settling them, by queue and how.", "queue", "how")
	dead        = desc("dead_total", "Jobs that died, by queue and reason.", "queue", "reason")
	cancelled   = desc("cancelled_total", "Jobs that were cancelled, by queue: by an operator, or with their session.", "queue")
	wait        = desc("wait_seconds", "Time from when a job was due to its first take, by queue.", "queue")
	run         = desc("run_seconds", "Time from the start of a run to its settle, by queue.", "queue")
	lost        = desc("data_lost_total", "Jobs that left by policy, by reason.", "reason")
	leases      = desc("leases", "Live leases of all holders.")
	holders     = desc("holders", "Connected take streams by kind; of kind unary the calls that wait for work.", "kind")
	breakers    = desc("breakers", "Breakers of queues and groups that are not simply closed, by state; closed: forced so.", "state")
	heldGroups  = desc("groups_held", "Groups that are held until a date.")
	duplicates  = desc("duplicates_total", "Enqueues answered with an earlier job because of their idempotency key.")
	lateOK      = desc("late_ok_total", "Successes accepted after their lease had ended.")
	outOfOrder  = desc("out_of_order_total", "Jobs given out behind a later member of their group.")
	clockSteps  = desc("clock_steps_total", "Times the clock stepped or the process stood still.")
	faults      = desc("faults_total", "Faults of the server: each refused a command, set a job aside or let a duty wait; the log has the details.")
	opened      = desc("breaker_opened_total", "Times a breaker opened.")
	folded      = desc("folded_total", "Jobs that became a part of a waiting job of their batch.")
	cronJobs    = desc("cron_jobs_total", "Jobs that ticks of cron entries enqueued.")
	cronRefused = desc("cron_refused_total", "Jobs of ticks of cron entries that were refused, counted at each try.")
	cronSkipped = desc("cron_skipped_total", "Ticks of cron entries that were missed and not made up for.")
	commit      = desc("commit_seconds", "Time of one transaction, until its log entry is handed to the system.")
	fsync       = desc("sync_seconds", "Time the answers of one transaction then waited for the disk.")
	batch       = desc("batch_commands", "Commands in one transaction.")
	working     = desc("store_working", "1 while the store takes work; what else is told of now is missing while it is 0.")
	diskFree    = desc("disk_free_bytes", "Free space where the work is kept.")
	diskTotal   = desc("disk_total_bytes", "The whole space there.")
	diskReserve = desc("disk_reserve_bytes", "Free space below which enqueues are refused.")
)

// Describe implements prometheus.Collector. Which samples there are depends on
// what happened: it is left unchecked.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeMax) //nolint:forbidigo // a collector is given none
	defer cancel()
	m := c.engine.Meter.Measure(ctx)
	p := page{ch}
	other, sessions := m.Other, m.Sessions
	for i := range m.Queues {
		q := &m.Queues[i]
		switch q.Name {
		case Other:
			other.Merge(q)
		case Sessions:
			sessions.Merge(q)
		default:
			p.queue(utf8Label(q.Name), q, m.Working)
		}
	}
	p.queue(Other, &other, m.Working)
	if sessions != (meter.Queue{}) {
		p.queue(Sessions, &sessions, m.Working)
	}
	p.server(&m)
	p.parts(c.engine)
	tally, now, ok := c.engine.Grid.Measure(ctx)
	p.grid(&tally, &now, ok && m.Working)
}

func utf8Label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// page is where samples go.
type page struct{ ch chan<- prometheus.Metric }

func (p page) put(d *prometheus.Desc, k kind, v float64, labels ...string) {
	p.ch <- prometheus.MustNewConstMetric(d, k, v, labels...)
}

// histogram turns buckets into cumulative ones; unit is how many of what was
// measured are one of what is shown.
func (p page) histogram(d *prometheus.Desc, h *histogram.Histogram, edges *histogram.Edges, unit float64, labels ...string) {
	buckets, all := make(map[float64]uint64, len(edges)), uint64(0)
	for i, n := range h.Counts {
		all += n
		if i < len(edges) {
			buckets[float64(edges[i])/unit] = all
		}
	}
	p.ch <- prometheus.MustNewConstHistogram(d, all, float64(h.Sum)/unit, buckets, labels...)
}

// families are those of counts; what is counted for the whole server is not of them.
var families = map[string]*prometheus.Desc{
	"enqueued": enqueued, "taken": taken, "settled": settled, "retries": retries, "ended": ended, "dead": dead, "cancelled": cancelled,
}

func (p page) queue(name string, q *meter.Queue, now bool) {
	for c, n := range q.N {
		family, word := meter.Count(c).Words()
		labels := []string{name, word}
		if word == "" {
			labels = labels[:1]
		}
		if d := families[family]; d != nil {
			p.put(d, counter, float64(n), labels...)
		}
	}
	p.histogram(wait, &q.Wait, &histogram.Spans, 1000, name)
	p.histogram(run, &q.Run, &histogram.Spans, 1000, name)
	if t := &q.Turns; q.InTurns || t.Ended > 0 {
		p.histogram(turnLatency, &t.Latency, &histogram.Spans, 1000, name)
		p.histogram(turnTries, &t.Done, &meter.Tries, 1, name, "done")
		p.histogram(turnTries, &t.Exhausted, &meter.Tries, 1, name, "exhausted")
	}
	if !now {
		return
	}
	for state := job.Scheduled; state < job.States; state++ {
		n := q.Depth.States[state]
		if state == job.Dead { // they are no deaths
			p.put(jobsNow, gauge, float64(q.Depth.Cancelled()), name, "cancelled")
			n -= q.Depth.Cancelled()
		}
		p.put(jobsNow, gauge, float64(n), name, stateWords[state])
	}
	p.put(bytesNow, gauge, float64(q.Depth.Bytes), name)
	p.put(runningNow, gauge, float64(q.Depth.Leases), name)
	if name == Other || name == Sessions { // what follows cannot be told of many together
		return
	}
	p.put(oldestNow, gauge, float64(q.Oldest)/1000, name)
	for state := job.Scheduled; state < job.States; state++ {
		if state != job.Done {
			p.put(oldestState, gauge, float64(q.Ages[state])/1000, name, stateWords[state])
		}
	}
	if q.InTurns {
		for s, n := range q.Depth.Status {
			p.put(turnJobs, gauge, float64(n), name, engine.Status(s).String())
			p.put(turnOldest, gauge, float64(q.StatusAges[s])/1000, name, engine.Status(s).String())
		}
		for c, n := range q.Depth.Groups {
			p.put(turnGroups, gauge, float64(n), name, engine.Condition(c).String())
		}
	}
	p.put(pausedNow, gauge, oneIf(q.Paused), name)
	p.put(heldNow, gauge, oneIf(q.Held), name)
	if q.Breaker != job.BreakerClosed {
		p.put(breakerNow, gauge, 1, name, q.Breaker.String())
	}
}

// stateWords are the states as the wire calls them.
var stateWords = [job.States]string{"", "scheduled", "ready", "in_flight", "completed", "dead"}

func (p page) server(m *meter.Measures) {
	s := &m.Stats
	var discarded uint64
	for i := range m.Queues {
		discarded += m.Queues[i].N[meter.Discarded]
	}
	discarded += m.Other.N[meter.Discarded]
	for word, n := range map[string]uint64{
		"expired": s.Expired, "purged": s.Purged, "evicted": s.Evicted, "discarded": discarded,
	} {
		p.put(lost, counter, float64(n), word)
	}
	for d, n := range map[*prometheus.Desc]uint64{
		duplicates: s.Duplicates, lateOK: s.LateOK, outOfOrder: s.OutOfOrder, clockSteps: s.ClockSteps, faults: s.Faults,
	} {
		p.put(d, counter, float64(n))
	}
	p.put(leases, gauge, float64(m.Leases))
	for kind, n := range m.Holders {
		p.put(holders, gauge, float64(n), job.HolderKind(kind).String())
	}
	p.histogram(commit, &m.Commit, &meter.Writing, float64(time.Second))
	p.histogram(fsync, &m.Sync, &meter.Writing, float64(time.Second))
	p.histogram(batch, &m.Batch, &meter.Sizes, 1)
	p.put(working, gauge, oneIf(m.Working))
	if m.Working {
		for state, n := range m.Breakers {
			p.put(breakers, gauge, float64(n), job.BreakerState(state).String())
		}
		p.put(heldGroups, gauge, float64(m.HeldGroups))
	}
	if m.Total > 0 {
		p.put(diskFree, gauge, float64(m.Free))
		p.put(diskTotal, gauge, float64(m.Total))
		p.put(diskReserve, gauge, math.Max(0, float64(m.Reserve)))
	}
}

// parts is what parts count themselves.
func (p page) parts(e *part.Engine) {
	crons := e.Crons.Counts()
	for d, n := range map[*prometheus.Desc]uint64{
		opened: e.Guard.Opened(), folded: e.Folds.Folded(),
		cronJobs: crons.Jobs, cronRefused: crons.Refused, cronSkipped: crons.Skipped,
	} {
		p.put(d, counter, float64(n))
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
