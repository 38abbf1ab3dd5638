package embedded

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// The rows of sessions and holders change with every batch of tasks. Their first
// layout was JSON, which is still read.

// The flags of a session.
const (
	sessionDepends = 1 << iota
	sessionDropped
	sessionStalled
	sessionInfo // what its door keeps with it follows
	sessionFlags
)

// The flags of a holder.
const (
	holderProperties = 1 << iota // it named some, or said that it has none
	holderMachine                // it is an engine, of which the rest tells
	holderFlags
)

// The flags of an engine.
const (
	machinePolls = 1 << iota
	machineDraining
	machineLost
	machineAwaited
	machineFlags
)

func appendSession(b []byte, s *job.Session) []byte {
	b = append(appendString(b, s.Name), byte(s.State),
		bit(s.Depends)*sessionDepends|bit(s.Dropped)*sessionDropped|bit(s.Stalled)*sessionStalled|bit(s.Info != nil)*sessionInfo)
	if s.Info != nil {
		b = append(binary.AppendUvarint(b, uint64(len(s.Info))), s.Info...)
	}
	b = appendString(appendString(appendString(b, s.By.Name), s.By.From), s.Why)
	b = appendMillis(b, s.Created, s.Closed, s.Ended, s.Next)
	for _, n := range [...]int64{s.Submitted, s.Done, s.Failed, s.Cancelled, s.Collected, s.Forgotten, int64(s.Tags)} {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Strikes)))
	for i := range s.Strikes {
		k := &s.Strikes[i]
		b = append(appendMillis(appendCounters(appendString(b, k.Engine), k.Count), k.Last, k.Until), bit(k.Out))
		b = binary.AppendUvarint(b, uint64(len(k.Tasks)))
		for t := range k.Tasks {
			b = append(b, k.Tasks[t][:]...)
		}
	}
	return b
}

func (r *reader) session() *job.Session {
	s := &job.Session{Name: r.string(), State: job.SessionState(r.byte())}
	flags := r.flags(sessionFlags)
	s.Depends, s.Dropped, s.Stalled = flags&sessionDepends != 0, flags&sessionDropped != 0, flags&sessionStalled != 0
	if flags&sessionInfo != 0 {
		s.Info = append([]byte{}, r.bytes(r.uvarint())...)
	}
	s.By, s.Why = job.Actor{Name: r.string(), From: r.string()}, r.string()
	s.Created, s.Closed, s.Ended, s.Next = r.millis(), r.millis(), r.millis(), r.millis()
	for _, n := range [...]*int64{&s.Submitted, &s.Done, &s.Failed, &s.Cancelled, &s.Collected, &s.Forgotten} {
		*n = r.varint()
	}
	s.Tags = int(r.varint())
	for n := r.count(); n > 0 && !r.bad; n-- {
		k := job.Strike{Engine: r.string(), Count: r.counter(), Last: r.millis(), Until: r.millis(), Out: r.flags(2) != 0}
		for t := r.count(); t > 0 && !r.bad; t-- {
			k.Tasks = append(k.Tasks, r.id())
		}
		s.Strikes = append(s.Strikes, k)
	}
	r.bad = r.bad || !s.State.Valid()
	return s
}

func appendHolder(b []byte, h *job.Holder) []byte {
	b = append(appendString(b, h.Name), byte(h.Kind), bit(h.Properties != nil)*holderProperties|bit(h.Machine != nil)*holderMachine)
	b = appendMillis(b, h.Until)
	if h.Properties != nil {
		b = binary.AppendUvarint(b, uint64(len(h.Properties)))
		for _, name := range slices.Sorted(maps.Keys(h.Properties)) {
			b = appendString(appendString(b, name), h.Properties[name])
		}
	}
	m := h.Machine
	if m == nil {
		return b
	}
	b = binary.AppendVarint(binary.AppendVarint(appendString(b, m.Host), int64(m.Slots)), m.Epoch)
	b = appendMillis(b, m.LoggedIn, m.Heard, m.Health.Until)
	b = append(b, byte(m.Health.State),
		bit(m.Polls)*machinePolls|bit(m.Draining)*machineDraining|bit(m.Lost)*machineLost|bit(m.Awaited)*machineAwaited)
	b = binary.AppendUvarint(b, uint64(len(m.Health.Row)))
	for i := range m.Health.Row {
		b = append(append(b, m.Health.Row[i].Task[:]...), bit(m.Health.Row[i].Elsewhere))
	}
	b = binary.AppendUvarint(b, uint64(len(m.Stopping)))
	for _, hash := range m.Stopping {
		b = binary.BigEndian.AppendUint64(b, hash)
	}
	return b
}

func (r *reader) holder() *job.Holder {
	h := &job.Holder{Name: r.string(), Kind: job.HolderKind(r.byte())}
	flags := r.flags(holderFlags)
	h.Until = r.millis()
	r.bad = r.bad || h.Kind > job.Unary
	if flags&holderProperties != 0 {
		h.Properties = map[string]string{}
		for n := r.count(); n > 0 && !r.bad; n-- {
			name := r.string()
			h.Properties[name] = r.string()
		}
	}
	if flags&holderMachine == 0 {
		return h
	}
	m := &job.Machine{Host: r.string(), Slots: int(r.varint()), Epoch: r.varint(), LoggedIn: r.millis(), Heard: r.millis()}
	m.Health.Until, m.Health.State = r.millis(), job.HealthState(r.byte())
	r.bad = r.bad || m.Health.State >= job.HealthStates
	is := r.flags(machineFlags)
	m.Polls, m.Draining, m.Lost, m.Awaited = is&machinePolls != 0, is&machineDraining != 0, is&machineLost != 0, is&machineAwaited != 0
	for n := r.count(); n > 0 && !r.bad; n-- {
		m.Health.Row = append(m.Health.Row, job.FastFail{Task: r.id(), Elsewhere: r.flags(2) != 0})
	}
	for n := r.count(); n > 0 && !r.bad; n-- {
		if b := r.bytes(8); b != nil {
			m.Stopping = append(m.Stopping, binary.BigEndian.Uint64(b))
		}
	}
	h.Machine = m
	return h
}

// flags reads a byte of flags that are all below a bound.
func (r *reader) flags(bound byte) byte {
	b := r.byte()
	r.bad = r.bad || b >= bound
	return b
}

func (r *reader) id() (id job.ID) {
	copy(id[:], r.bytes(uint64(len(id))))
	return id
}

// filled is nil for an empty list, which only JSON tells apart.
func filled[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
