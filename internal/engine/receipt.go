package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Idempotency (core.md section 7): what is taken in with a key leaves a receipt,
// by which the same key is answered again.

// receiptsOf hashes keys and contents, on the caller's goroutine; nil where a
// job has no key.
func receiptsOf(list []NewJob) []*job.Receipt {
	var out []*job.Receipt
	var all []job.Receipt
	var d digest
	for i := range list {
		if n := &list[i]; n.Key != "" {
			if out == nil {
				out, all = make([]*job.Receipt, len(list)), make([]job.Receipt, 0, len(list)-i)
			}
			all = append(all, job.Receipt{Hash: d.key(n.Job.Door, n.Job.Queue, n.Key), Content: d.content(n)})
			out[i] = &all[len(all)-1]
		}
	}
	return out
}

// KeyOf is the hash under which the receipt of a key is kept.
func KeyOf(d job.Door, queue, key string) [16]byte { return new(digest).key(d, queue, key) }

// digest hashes parts, each preceded by its length. What it hashes must stay as it
// is: receipts of earlier versions are compared with it.
type digest struct {
	b    []byte
	part []byte // that is being put together
}

func (d *digest) add(part string) {
	d.b = append(binary.AppendUvarint(d.b, uint64(len(part))), part...)
}

func (d *digest) addPart() {
	d.b = append(binary.AppendUvarint(d.b, uint64(len(d.part))), d.part...)
	d.part = d.part[:0]
}

func (d *digest) sum() [16]byte {
	full := sha256.Sum256(d.b)
	d.b = d.b[:0]
	return [16]byte(full[:])
}

func (d *digest) key(door job.Door, queue, key string) [16]byte {
	d.add(door.String())
	d.add(queue)
	d.add(key)
	return d.sum()
}

// content hashes what a job is. Its dates say when: whoever sends "in two
// hours" a second time has computed another one, for the same work (core.md 7).
func (d *digest) content(n *NewJob) [16]byte {
	j := &n.Job
	d.add(j.Queue)
	d.add(j.Type)
	d.add(j.Group)
	d.part = append(d.part, n.Payload...)
	d.addPart()
	if j.Retry != nil {
		d.part = j.Retry.AppendBinary(d.part)
	}
	d.addPart()
	d.add(rule.Canonical(j.Requires))
	x := &job.Extras{}
	if j.Extras != nil {
		x = j.Extras
	}
	d.part = append(d.part, '[')
	for i, label := range x.Labels {
		if i > 0 {
			d.part = append(d.part, ' ')
		}
		d.part = append(appendQuoted(append(d.part, '{'), label.Key), ' ')
		d.part = append(appendQuoted(d.part, label.Value), '}')
	}
	d.part = append(d.part, ']')
	d.addPart()
	d.part = append(strconv.AppendUint(d.part, uint64(j.Priority), 10), ' ')
	d.part = append(j.RunTimeout.Append(d.part), ' ')
	d.part = append(j.StartTimeout.Append(d.part), ' ')
	d.part = append(strconv.AppendUint(d.part, uint64(j.Copies), 10), ' ')
	d.part = append(j.RetainDone.Append(d.part), ' ')
	d.part = append(j.RetainDead.Append(d.part), ' ')
	d.part = append(d.part, n.Place.String()...)
	d.addPart()
	if u := x.Unique; u != nil {
		d.add(u.While.String())
		d.add(u.Key)
	}
	if t := x.Batch; t != nil {
		d.add(t.Key)
		d.add(t.When)
		d.add(t.Fold)
	}
	for _, u := range x.Budgets {
		d.add("budget")
		d.add(u.Key)
		d.add(strconv.FormatInt(u.Cost, 10))
	}
	if a := x.Affinity; a != nil {
		d.add("affinity")
		d.add(a.Tag)
	}
	if len(n.Needs) > 0 {
		d.add("needs")
		d.add(n.OnDepFail.String())
		for _, need := range n.Needs {
			d.add(need)
		}
	}
	return d.sum()
}

// appendQuoted is strconv.AppendQuote, faster for what needs no escapes.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return strconv.AppendQuote(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// recall finds the jobs whose idempotency key was seen before. twins maps the
// place of a job to that of an earlier one of the same call with the same key.
func recall(v store.Reader, list []NewJob, receipts []*job.Receipt, out []Added) (twins map[int]int, err error) {
	if receipts == nil {
		return nil, nil
	}
	var seen map[[16]byte]int // none are equal while it is nil
	if !distinct(receipts) {
		seen = map[[16]byte]int{}
	}
	for i, want := range receipts {
		if want == nil {
			continue
		}
		if first, ok := seen[want.Hash]; ok {
			if receipts[first].Content != want.Content {
				if !list[i].Apart {
					return nil, keyTaken(&list[i])
				}
				out[i] = Added{Duplicate: true, Err: keyTaken(&list[i])}
				continue
			}
			if twins == nil {
				twins = map[int]int{}
			}
			twins[i] = first
			out[i].Duplicate = true
			continue
		}
		if seen != nil {
			seen[want.Hash] = i
		}
		known, err := store.Row[*job.Receipt](v, want.Key())
		if err != nil {
			return nil, err
		}
		if known == nil || known.Expires <= v.Now() {
			continue
		}
		if known.Content != want.Content {
			if !list[i].Apart {
				return nil, keyTaken(&list[i])
			}
			out[i] = Added{Duplicate: true, Err: keyTaken(&list[i])}
			delete(seen, want.Hash) // a later one may be the same as what was here
			continue
		}
		j, err := v.Get(known.Job)
		if err != nil {
			return nil, err
		}
		if j != nil && !list[i].Sees(j) { // it was moved
			j = nil
		}
		out[i] = Added{Job: j, ID: known.Job, Duplicate: true}
	}
	return twins, nil
}

// distinct reports that no two receipts have the same key. It may miss that.
func distinct(list []*job.Receipt) bool {
	if len(list) < 2 {
		return true
	}
	heads := make([]uint64, 1<<bits.Len(uint(2*len(list))))
	for _, r := range list {
		if r == nil {
			continue
		}
		head := binary.LittleEndian.Uint64(r.Hash[:]) | 1
		i := head >> 1 & uint64(len(heads)-1)
		for ; heads[i] != 0; i = (i + 1) & uint64(len(heads)-1) {
			if heads[i] == head {
				return false
			}
		}
		heads[i] = head
	}
	return true
}

func keyTaken(n *NewJob) *job.Error {
	if n.Job.Door == job.DoorGrid {
		return &job.Error{
			Kind: job.Exists, Field: "seq",
			Text: fmt.Sprintf("seq %s was submitted before with other content; give another task a number of its own", n.Key),
		}
	}
	return &job.Error{
		Kind: job.Exists, Field: "idempotency_key",
		Text: fmt.Sprintf("idempotency key %q was used for other content; use a new key for new work", n.Key),
	}
}

// inboxWindow is how long the receipt of a message of an inbox outlives its
// job at least (core.md section 7).
const inboxWindow = job.Day

// taskWindow is how long the number of a task is known: a driver that comes back
// may send again what it does not know to be here.
const taskWindow = 30 * job.Day

// window is how long a receipt of work outlives its job.
func (o *Options) window(d job.Door) job.Millis {
	switch d {
	case job.DoorInbox:
		return max(o.Idempotency, inboxWindow)
	case job.DoorGrid:
		return max(o.Idempotency, taskWindow)
	default:
		return o.Idempotency
	}
}

// Recall finds the job that came with an idempotency key, by its receipt. It is
// zero where there is none, or not any more.
func (e *Engine) Recall(ctx context.Context, d job.Door, queue, key string) (id job.ID, err error) {
	receipt := job.Receipt{Hash: KeyOf(d, queue, key)}
	err = e.View(ctx, func(v store.Reader) error {
		known, err := store.Row[*job.Receipt](v, receipt.Key())
		if known != nil && known.Expires > v.Now() {
			id = known.Job
		}
		return err
	})
	return id, err
}
