// Package codec writes and reads the fields of stored values. A layout is a
// function that names its fields in their order, once for both directions:
// whether they are written or read is decided where the Fields begin.
//
// Numbers are varints, texts and lists are led by their length.
package codec

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

// Fields are written behind each other, or read from the left. What cannot be
// read makes them bad for good, and reads as whatever is left of it.
type Fields struct {
	b     []byte // written so far, or left to be read
	reads bool
	bad   bool
}

// Write begins fields that are written behind b. They are not changed.
func Write(b []byte) Fields { return Fields{b: b} }

// Read begins fields that are read from b.
func Read(b []byte) Fields { return Fields{b: b, reads: true} }

// Bytes is what was written, or what is left.
func (f *Fields) Bytes() []byte { return f.b }

// Reads reports the direction.
func (f *Fields) Reads() bool { return f.reads }

// Bad reports that something was cut short or refused.
func (f *Fields) Bad() bool { return f.bad }

// Whole reports that all was read and nothing is left.
func (f *Fields) Whole() bool { return !f.bad && len(f.b) == 0 }

// Refuse makes the fields bad if what was read cannot be.
func (f *Fields) Refuse(when bool) { f.bad = f.bad || f.reads && when }

// take reads n bytes, which are part of what is read.
func (f *Fields) take(n uint64) []byte {
	if n > uint64(len(f.b)) {
		f.bad = true
		return nil
	}
	out := f.b[:n]
	f.b = f.b[n:]
	return out
}

// uvarint reads a number; most are small.
func (f *Fields) uvarint() uint64 {
	if len(f.b) > 0 && f.b[0] < 0x80 {
		v := f.b[0]
		f.b = f.b[1:]
		return uint64(v)
	}
	return f.longUvarint()
}

func (f *Fields) longUvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.bad = true
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *Fields) putUvarint(v uint64) {
	if v < 0x80 {
		f.b = append(f.b, byte(v))
		return
	}
	f.b = binary.AppendUvarint(f.b, v)
}

// Raw is an array of bytes.
func (f *Fields) Raw(p []byte) {
	if f.reads {
		copy(p, f.take(uint64(len(p))))
		return
	}
	f.b = append(f.b, p...)
}

// Uint64 is a number of 8 bytes, the highest first.
func (f *Fields) Uint64(p *uint64) {
	if !f.reads {
		f.b = binary.BigEndian.AppendUint64(f.b, *p)
	} else if b := f.take(8); b != nil {
		*p = binary.BigEndian.Uint64(b)
	}
}

// Byte is one byte, which may be anything.
func Byte[T ~uint8](f *Fields, p *T) {
	if !f.reads {
		f.b = append(f.b, byte(*p))
	} else if b := f.take(1); b != nil {
		*p = T(b[0])
	}
}

// Enum is a byte below an end.
func Enum[T ~uint8](f *Fields, p *T, end T) {
	Byte(f, p)
	f.Refuse(*p >= end)
}

// Bits is a byte of up to 8 flags, the lowest first.
func (f *Fields) Bits(list ...*bool) {
	var b byte
	if !f.reads {
		for i, p := range list {
			if *p {
				b |= 1 << i
			}
		}
		f.b = append(f.b, b)
		return
	}
	Byte(f, &b)
	for i, p := range list {
		*p = b>>i&1 != 0
	}
	f.bad = f.bad || b>>len(list) != 0
}

// Uint is a number of at most most.
func Uint[T ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int | ~int64](f *Fields, p *T, most uint64) {
	if !f.reads {
		f.putUvarint(uint64(*p))
		return
	}
	v := f.uvarint()
	*p = T(v)
	f.bad = f.bad || v > most
}

// Counters are numbers of 32 bits.
func (f *Fields) Counters(list ...*uint32) {
	if !f.reads {
		b, n := f.room(len(list))
		for _, p := range list {
			n = put(b, n, uint64(*p))
		}
		f.b = b[:n]
		return
	}
	for _, p := range list {
		v := f.uvarint()
		*p = uint32(v)
		f.bad = f.bad || v > math.MaxUint32
	}
}

// Int is numbers that may be negative.
func Int[T ~int | ~int64](f *Fields, list ...*T) {
	if !f.reads {
		b, n := f.room(len(list))
		for _, p := range list {
			n = put(b, n, uint64(*p<<1)^uint64(*p>>63))
		}
		f.b = b[:n]
		return
	}
	for _, p := range list {
		v := f.uvarint()
		*p = T(v>>1) ^ -T(v&1)
	}
}

// room is what was written, with room for numbers behind n.
func (f *Fields) room(numbers int) (b []byte, n int) {
	n = len(f.b)
	b = slices.Grow(f.b, numbers*binary.MaxVarintLen64)
	return b[:cap(b)], n
}

// put writes a number behind n and returns where it ends.
func put(b []byte, n int, v uint64) int {
	for v >= 0x80 {
		b[n] = byte(v) | 0x80
		v >>= 7
		n++
	}
	b[n] = byte(v)
	return n + 1
}

// Since is a number, as its distance from another one.
func Since[T ~int64](f *Fields, p *T, from T) {
	by := *p - from
	if Int(f, &by); f.reads {
		*p = from + by
	}
}

// Piece is bytes. What was read is part of what is read from.
func (f *Fields) Piece(p *[]byte) {
	if f.reads {
		*p = f.take(f.uvarint())
		return
	}
	f.putUvarint(uint64(len(*p)))
	f.b = append(f.b, *p...)
}

// Rest is all that is left.
func (f *Fields) Rest(p *[]byte) {
	if f.reads {
		*p, f.b = append([]byte(nil), f.b...), nil
		return
	}
	f.b = append(f.b, *p...)
}

// Text is strings.
func (f *Fields) Text(list ...*string) {
	if !f.reads {
		b := f.b
		for _, p := range list {
			b = append(binary.AppendUvarint(b, uint64(len(*p))), *p...)
		}
		f.b = b
		return
	}
	for _, p := range list {
		*p = string(f.take(f.uvarint()))
	}
}

// List is the length of a list, and the list to go through. One that is read is no
// longer than there are bytes behind it, and nil if it is empty.
func List[T any](f *Fields, list *[]T) []T {
	if !f.reads {
		f.putUvarint(uint64(len(*list)))
		return *list
	}
	switch n := f.uvarint(); {
	case n > uint64(len(f.b)):
		f.bad = true
	case n > 0:
		*list = make([]T, n)
	}
	return *list
}

// Map is a list of keys and values, sorted by key. It is never nil.
func (f *Fields) Map(m *map[string]string) {
	keys := slices.Sorted(maps.Keys(*m))
	if f.reads {
		*m = map[string]string{}
	}
	for _, key := range List(f, &keys) {
		value := (*m)[key]
		if f.Text(&key, &value); f.reads {
			(*m)[key] = value
		}
	}
}

// New is what p points to, which is made anew to be read.
func New[T any](f *Fields, p **T) *T {
	if f.reads {
		*p = new(T)
	}
	return *p
}

// Mark is set by that it is named: nothing is stored for it.
func (f *Fields) Mark(p *bool) {
	if f.reads {
		*p = true
	}
}
