package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/config"
	"github.com/reprisehq/reprise/wire"
)

// Limits of one bulk request, and of one payload.
const (
	bulkJobsMax  = 500
	bulkBytesMax = 8 << 20
	payloadMax   = wire.BodyBytesMax
)

// enqueueFlags are the flags of "reprise enqueue".
type enqueueFlags struct {
	payload, ndjson string
	at, retryLimit  string
	folding         wire.Batch // of --batch-*
	priority        uint16
	keep, keepDead  time.Duration
	retry, expires  string
	labels          []string
	budgets         []string
	job             client.Job
	json            bool
}

func newEnqueueCommand() *cobra.Command {
	var f enqueueFlags
	cmd := verb{
		use:   "enqueue --queue NAME --type NAME",
		short: "Put work into a queue",
		long: `Put one job into a queue, or many from a file.

The payload is JSON; whoever works the queue gets it exactly as it was given.
When this command says that a job is enqueued, the job is safe on the server's
disk.

With --ndjson each line of a file is the payload of one job. The lines are sent
500 at a time; each such part is taken whole or not at all.

With an idempotency key, repeating the command is harmless: the server answers
with the job that is already there. With --ndjson, line N gets the key KEY/N.`,
		example: `  reprise enqueue --queue mail --type welcome --payload '{"to":"ada@example.com"}'
  reprise enqueue --queue mail --type digest --delay 2h
  reprise enqueue --queue mail --type digest --at 2026-12-24T08:00:00Z
  reprise enqueue --queue hooks --type call --retry '{limit: 9, curve: {kind: linear, base: 1m, step: 5m}}' --expires 2d
  reprise enqueue --queue import --type file --payload @order.json --retry-limit 5
  date +%s | reprise enqueue --queue clock --type tick --payload -
  reprise enqueue --queue events --type event --ndjson events.ndjson --idempotency-key "import of May"`,
		options: client.Options{RetryFor: 5 * time.Second},
		do:      f.run,
	}.command()
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.job.Queue, "queue", "q", "", "queue to put the job into (required)")
	flags.StringVarP(&f.job.Type, "type", "t", "", "what kind of job it is (required)")
	flags.StringVarP(&f.payload, "payload", "p", "null", "the payload: JSON, - for standard input, or @FILE")
	flags.StringVar(&f.ndjson, "ndjson", "", "file with one payload per line, - for standard input")
	flags.Uint16Var(&f.priority, "priority", wire.PriorityDefault, "0 to 65535; lower runs first")
	spanVar(flags, &f.job.Delay, "delay", 0, "not before this has passed, such as 90s or 2h")
	flags.StringVar(&f.at, "at", "", "not before this time, such as 2026-12-24T08:00:00Z or \"2026-12-24 08:00\" (local)")
	flags.StringVar(&f.expires, "expires", "", "dead if it was not started by then: a time, or a span from now such as 2d")
	flags.StringVar(&f.job.Place, "place", "", "front or back of its priority (default back)")
	flags.StringVar(&f.retry, "retry", "", "retry policy, as YAML or JSON: the text itself, or @FILE")
	flags.StringVar(&f.retryLimit, "retry-limit", "", "retries after the first attempt: a number, unlimited or none (default: the queue's)")
	flags.StringVar(&f.job.Group, "group", "", "key inside the queue, such as a customer, that carries order and limits")
	flags.StringArrayVar(&f.labels, "label", nil, "`NAME=VALUE`, kept with the job and handed to its worker; may be repeated")
	flags.StringArrayVar(&f.job.Requires, "requires", nil, "condition on the worker, such as 'cpuMHz > 350'; may be repeated")
	flags.IntVar(&f.job.Copies, "copies", 0, "workers that may run it side by side; the first success ends the others (default 1)")
	spanVar(flags, &f.job.RunTimeout, "run-timeout", 0, "longest time for one attempt (default: as the queue says)")
	spanVar(flags, &f.job.StartTimeout, "start-timeout", 0, "longest time between delivery and start (default: as the queue says)")
	flags.StringVar(&f.job.Traceparent, "traceparent", "", "W3C trace context, in which its runs are told")
	flags.StringVar(&f.job.IdempotencyKey, "idempotency-key", "", "makes repeating the command harmless")
	flags.StringVar(&f.job.UniqueKey, "unique-key", "", "key that one job of the server has at a time; while another has it, nothing is added")
	flags.StringVar(&f.job.UniqueWhile, "unique-while", "", "how long the job has its unique key: queued, active or exists (default queued)")
	flags.StringVar(&f.folding.Key, "batch-key", "", "key of a batch: a waiting job with the same one takes this one in")
	flags.StringVar(&f.folding.When, "batch-when", "", "jq over $existing and $new: whether the waiting job takes a new one in (default true)")
	flags.StringVar(&f.folding.Fold, "batch-fold", "", "jq over $existing and $new: what the payload of the waiting job is then")
	flags.StringArrayVar(&f.budgets, "budget", nil, "budget that each run uses: KEY, or KEY=COST; may be repeated")
	spanVar(flags, &f.keep, "keep", 0, "how long the job and its result stay when it is done, such as 24h (default: as the queue says)")
	spanVar(flags, &f.keepDead, "keep-dead", 0, "how long the job stays when it is dead (default: as the queue says)")
	flags.BoolVar(&f.json, "json", false, "print the server's answer as JSON") // the last of them
	completeFlag(cmd, "queue", queues)
	completeFlag(cmd, "budget", budgets)
	completeFlag(cmd, "place", words{wire.Front, wire.Back})
	completeFlag(cmd, "unique-while", words{"queued", "active", "exists"})
	return cmd
}

func (f *enqueueFlags) run(c *call) error {
	c.asJSON = f.json
	if err := f.check(c.Command); err != nil {
		return err
	}
	if f.ndjson != "" {
		return f.runMany(c)
	}
	payload, err := readPayload(f.payload, c.InOrStdin())
	if err != nil {
		return err
	}
	f.job.Payload = payload
	added, err := c.cl.Enqueue(c.Context(), f.job)
	return c.show(added, err, func(io.Writer) error {
		switch {
		case added.Folded:
			c.say("%s in queue %s took it in", added.ID, added.Queue)
		case added.Duplicate:
			c.say("%s is already in queue %s (%s); nothing was added", added.ID, added.Queue, added.Status)
		case added.Status == wire.Scheduled:
			c.say("%s is in queue %s, due %s", added.ID, added.Queue, moment(added.ReadyAt, time.Now()))
		default:
			c.say("%s is in queue %s (%s)", added.ID, added.Queue, added.Status)
		}
		return nil
	})
}

// check reads the flags that need more than to be stored.
func (f *enqueueFlags) check(cmd *cobra.Command) error {
	if f.job.Queue == "" {
		return usagef("--queue is missing: which queue should the job go into?")
	}
	if f.job.Type == "" {
		return usagef("--type is missing: workers tell jobs apart by it, for example --type welcome-mail")
	}
	if f.ndjson != "" && cmd.Flags().Changed("payload") {
		return usagef("--payload and --ndjson exclude each other: each line of the file is a payload")
	}
	if err := f.checkKeys(); err != nil {
		return err
	}
	if err := f.bind(); err != nil {
		return err
	}
	if cmd.Flags().Changed("keep") {
		f.job.Retention = &wire.Retention{CompletedMS: new(f.keep.Milliseconds())}
	}
	if cmd.Flags().Changed("keep-dead") {
		if f.job.Retention == nil {
			f.job.Retention = new(wire.Retention)
		}
		f.job.Retention.DeadMS = new(f.keepDead.Milliseconds())
	}
	if err := f.carry(time.Now()); err != nil {
		return err
	}
	if f.job.Delay > 0 && f.job.IdempotencyKey != "" {
		return usagef("--delay counts from now, so repeating the command would ask for something else; use --at with --idempotency-key")
	}
	if f.at != "" {
		if f.job.Delay != 0 {
			return usagef("--delay and --at exclude each other")
		}
		at, err := parseTime(f.at)
		if err != nil {
			return usagef("--at: %w", err)
		}
		f.job.At = at
	}
	if cmd.Flags().Changed("priority") {
		f.job.Priority = &f.priority
	}
	return f.policy()
}

// policy reads the flags of retries.
func (f *enqueueFlags) policy() error {
	switch {
	case f.retry != "" && f.retryLimit != "":
		return usagef("--retry and --retry-limit exclude each other: a policy has its limit")
	case f.retryLimit != "":
		limit, err := parseLimit(f.retryLimit)
		if err != nil {
			return usagef("--retry-limit: %w", err)
		}
		f.job.Retry = &wire.Retry{Limit: limit}
	case f.retry != "":
		text := []byte(f.retry)
		if name, isFile := strings.CutPrefix(f.retry, "@"); isFile {
			var err error
			if text, err = os.ReadFile(name); err != nil {
				return fmt.Errorf("reading the retry policy: %w", err)
			}
		}
		r, err := config.ReadPolicy("--retry", text) // as in the configuration file
		if err == nil {
			text, err = json.Marshal(r)
		}
		if err == nil {
			err = json.Unmarshal(text, &f.job.Retry)
		}
		if err != nil {
			return usagef("%w; a policy is such as '{limit: 5, curve: {kind: constant, delay: 10s}}'", err)
		}
	}
	return nil
}

// carry reads the flags of what the job carries beside its payload.
func (f *enqueueFlags) carry(now time.Time) error {
	labels, err := namedValues("label", f.labels)
	if err != nil {
		return err
	}
	f.job.Labels = labels
	if f.job.Place != "" && f.job.Place != wire.Front && f.job.Place != wire.Back {
		return usagef("--place %s: a job goes to the %s or the %s of its priority", f.job.Place, wire.Front, wire.Back)
	}
	if f.job.Copies < 0 || f.job.Copies > math.MaxUint8 {
		return usagef("--copies %d: 1 to %d workers may run a job", f.job.Copies, math.MaxUint8)
	}
	if f.expires != "" {
		at, err := parseTime(f.expires)
		if span, bad := parseSpan(f.expires); bad == nil {
			at, err = now.Add(span), nil
		}
		if err != nil {
			return usagef("--expires: %w, or a span such as 2d", err)
		}
		f.job.ExpiresAt = at
	}
	return nil
}

// checkKeys reads the flags of unique keys and batches.
func (f *enqueueFlags) checkKeys() error {
	if f.job.UniqueWhile != "" && f.job.UniqueKey == "" {
		return usagef("--unique-while needs --unique-key: which key should the job have?")
	}
	if f.folding == (wire.Batch{}) {
		return nil
	}
	if f.folding.Key == "" || f.folding.Fold == "" {
		return usagef("a batch needs --batch-key and --batch-fold, for example --batch-fold '$existing + $new'")
	}
	if f.job.UniqueKey != "" {
		return usagef("--unique-key and --batch-key exclude each other: a job is either turned away or taken in")
	}
	f.folding.When = cmp.Or(f.folding.When, "true")
	f.job.Batch = &f.folding
	return nil
}

func parseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; write it as 2026-12-24T08:00:00Z, or \"2026-12-24 08:00\" for local time", text)
}

func parseLimit(text string) (any, error) {
	if text == wire.Unlimited || text == wire.None {
		return text, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%q is no limit; use a whole number, unlimited or none", text)
	}
	return n, nil
}

// readPayload reads a payload given as JSON, as - or as @FILE.
func readPayload(text string, stdin io.Reader) (json.RawMessage, error) {
	raw, from := []byte(text), "--payload"
	if name, isFile := strings.CutPrefix(text, "@"); text == "-" || isFile && name != "" {
		var err error
		if raw, from, err = readFile(name, stdin); err != nil {
			return nil, fmt.Errorf("reading the payload: %w", err)
		}
	}
	if len(raw) > payloadMax {
		return nil, fmt.Errorf("the payload is larger than %d MiB; keep large data elsewhere and enqueue a reference", payloadMax>>20)
	}
	if err := checkJSON(raw); err != nil {
		return nil, usagef("%s is not JSON: %w%s", from, err, hint(raw))
	}
	return raw, nil
}

// checkJSON says what keeps raw from being one JSON value.
func checkJSON(raw []byte) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return errors.New("it is empty (use null for no payload)")
	}
	var v json.RawMessage
	return json.Unmarshal(raw, &v)
}

// hint helps with the usual mistake, a text without its quotes.
func hint(raw []byte) string {
	word := bytes.TrimSpace(raw)
	if len(word) == 0 || len(word) > 40 || bytes.ContainsAny(word, "{}[]\"'\n") {
		return ""
	}
	quoted, _ := json.Marshal(string(word))
	return fmt.Sprintf("\nA text needs its quotes: --payload '%s'", quoted)
}

// many is the state of one --ndjson run.
type many struct {
	*enqueueFlags
	client      *client.Client
	batch       []client.Job
	bytes       int
	first, last int // lines of the batch
	done        int // line up to which all is enqueued
	added       int64
	repeated    int64 // were there already
	folded      int64 // were taken in by a waiting job
}

func (f *enqueueFlags) runMany(c *call) error {
	in, name := c.InOrStdin(), "standard input"
	if f.ndjson != "-" {
		file, err := os.Open(f.ndjson)
		if err != nil {
			return fmt.Errorf("reading the payloads: %w", err)
		}
		defer func() { _ = file.Close() }()
		in, name = file, f.ndjson
	}
	m := &many{enqueueFlags: f, client: c.cl}
	begin := time.Now()
	p := newProgress(c.ErrOrStderr())
	err := m.read(c.Context(), in, func() {
		p.show(fmt.Sprintf("%s enqueued (%s/s)", plural(m.added, "job"), thousands(int64(float64(m.added)/time.Since(begin).Seconds()))))
	})
	p.hide()
	if err != nil {
		return m.explain(name, err)
	}
	text := fmt.Sprintf("%s in queue %s", plural(m.added, "new job"), f.job.Queue)
	if m.repeated > 0 {
		text += fmt.Sprintf(", %s were there already", thousands(m.repeated))
	}
	if m.folded > 0 {
		text += fmt.Sprintf(", %s were taken in by a waiting job", thousands(m.folded))
	}
	return c.answer(map[string]int64{"enqueued": m.added, "duplicates": m.repeated, "folded": m.folded}, "%s (%s)", text, span(time.Since(begin)))
}

// explain says how far it came, and how to go on without doing things twice.
func (m *many) explain(name string, err error) error {
	text := "Nothing was enqueued"
	if m.done > 0 {
		text = fmt.Sprintf("Lines up to %d are enqueued", m.done)
	}
	if len(m.batch) > 0 && !surelyRefused(err) {
		text += fmt.Sprintf(" for sure; whether lines %d to %d are is not known", m.first, m.last)
	}
	if m.job.IdempotencyKey != "" {
		text += "; the same command again adds only what is missing"
	}
	return fmt.Errorf("%s: %w\n%s", name, err, text)
}

// surelyRefused reports whether a call that ended so changed nothing.
func surelyRefused(err error) bool {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Status < 500
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

// read enqueues every line of in.
func (m *many) read(ctx context.Context, in io.Reader, progress func()) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), payloadMax)
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := checkJSON(line); err != nil {
			return errors.Join(m.send(ctx, progress), fmt.Errorf("line %d is not JSON: %w", number, err))
		}
		if len(m.batch) == bulkJobsMax || m.bytes+len(line) > bulkBytesMax {
			if err := m.send(ctx, progress); err != nil {
				return err
			}
		}
		m.add(line, number)
	}
	if err := lines.Err(); err != nil {
		return errors.Join(m.send(ctx, progress), fmt.Errorf("after line %d: %w", number, err))
	}
	return m.send(ctx, progress)
}

func (m *many) add(line []byte, number int) {
	if len(m.batch) == 0 {
		m.first = number
	}
	m.last = number
	j := m.job
	j.Payload = json.RawMessage(bytes.Clone(line))
	if j.IdempotencyKey != "" {
		j.IdempotencyKey += "/" + strconv.Itoa(number)
	}
	m.batch = append(m.batch, j)
	m.bytes += len(line)
}

// send enqueues the batch, if there is one.
func (m *many) send(ctx context.Context, progress func()) error {
	if len(m.batch) == 0 {
		return nil
	}
	added, err := m.client.EnqueueBulk(ctx, m.batch)
	if err != nil {
		return fmt.Errorf("lines %d to %d: %w", m.first, m.last, err)
	}
	for i := range added {
		switch {
		case added[i].Duplicate:
			m.repeated++
		case added[i].Folded:
			m.folded++
		default:
			m.added++
		}
	}
	m.done = m.last
	m.batch, m.bytes = m.batch[:0], 0
	progress()
	return nil
}
