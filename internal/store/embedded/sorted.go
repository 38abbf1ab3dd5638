package embedded

import "slices"

// chunkMax is how many items a chunk of a sorted list holds. Larger chunks
// move more bytes at an insert in the middle, smaller ones cost more headers.
const chunkMax = 256

// before is an order over items. Items hold no pointers, so the garbage
// collector never looks into a chunk.
type before[T any] interface{ Before(T) bool }

// sorted is an ordered list in chunks. Appending at the end fills chunks
// completely and costs next to nothing, and so does taking from the front:
// that is how nearly all jobs come and go. Anywhere else it costs two binary
// searches and a short move. docs/adr/0001 has the measurements.
type sorted[T before[T]] struct {
	chunks [][]T // none is empty
	lows   []T   // of each chunk but the first: all before it comes before this, and nothing in it does
	n      int
}

func (s *sorted[T]) len() int { return s.n }

// first returns the lowest item.
func (s *sorted[T]) first() (item T, ok bool) {
	if s.n == 0 {
		return item, false
	}
	return s.chunks[0][0], true
}

// last returns the highest item.
func (s *sorted[T]) last() (item T, ok bool) {
	if s.n == 0 {
		return item, false
	}
	tail := s.chunks[len(s.chunks)-1]
	return tail[len(tail)-1], true
}

// rank is the number of items before the given one: a look at every chunk,
// not at every item.
func (s *sorted[T]) rank(item T) (n int) {
	c, i, _ := s.find(item)
	for _, chunk := range s.chunks[:c] {
		n += len(chunk)
	}
	return n + i
}

// find returns where item stands, or would stand: behind the last of a chunk
// rather than before the first of the next.
func (s *sorted[T]) find(item T) (c, i int, found bool) {
	last := len(s.chunks) - 1
	if last < 0 {
		return 0, 0, false
	}
	tail := s.chunks[last]
	if tail[len(tail)-1].Before(item) {
		return last, len(tail), false
	}
	if c = last; last > 0 && item.Before(s.lows[last-1]) { // else it is among the latest, as most are
		lo, hi := 0, last-1 // the first chunk behind the item's
		for lo < hi {
			mid := int(uint(lo+hi) >> 1)
			if item.Before(s.lows[mid]) {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		c = lo
	}
	chunk := s.chunks[c]
	lo, hi := 0, len(chunk)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if chunk[mid].Before(item) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return c, lo, lo < len(chunk) && !item.Before(chunk[lo])
}

// at returns the item that equals the given one in order, to read or to
// change what does not take part in the order; nil if there is none.
func (s *sorted[T]) at(item T) *T {
	c, i, found := s.find(item)
	if !found {
		return nil
	}
	return &s.chunks[c][i]
}

// insert adds an item; one that is there already is replaced.
func (s *sorted[T]) insert(item T) {
	if len(s.chunks) == 0 {
		s.chunks = append(s.chunks, []T{item})
		s.n++
		return
	}
	c, i, found := s.find(item)
	if found {
		s.chunks[c][i] = item
		return
	}
	s.n++
	chunk := s.chunks[c]
	if len(chunk) < chunkMax {
		s.chunks[c] = insertAt(chunk, i, item)
		return
	}
	if next := c + 1; i == len(chunk) && next < len(s.chunks) && len(s.chunks[next]) < chunkMax {
		s.chunks[next], s.lows[c] = insertAt(s.chunks[next], 0, item), item
		return
	}
	right, low := make([]T, 0, chunkMax), item
	if i == len(chunk) { // the end of a full chunk: start the next one
		right = append(right, item)
	} else {
		right, low = append(right, chunk[chunkMax/2:]...), chunk[chunkMax/2]
		s.chunks[c] = chunk[:chunkMax/2]
		if i <= chunkMax/2 {
			s.chunks[c] = insertAt(s.chunks[c], i, item)
		} else {
			right = insertAt(right, i-chunkMax/2, item)
		}
	}
	s.chunks, s.lows = insertAt(s.chunks, c+1, right), insertAt(s.lows, c, low)
}

func insertAt[T any](list []T, i int, item T) []T {
	list = append(list, item)
	copy(list[i+1:], list[i:])
	list[i] = item
	return list
}

// remove takes an item out and reports whether it was there.
func (s *sorted[T]) remove(item T) bool {
	if s.n == 0 {
		return false
	}
	if head := s.chunks[0]; !head[0].Before(item) && !item.Before(head[0]) {
		s.n--
		if s.chunks[0] = head[1:]; len(head) == 1 {
			s.dropChunk(0)
		}
		return true
	}
	c, i, found := s.find(item)
	if !found {
		return false
	}
	s.n--
	chunk := append(s.chunks[c][:i], s.chunks[c][i+1:]...)
	s.chunks[c] = chunk
	switch {
	case len(chunk) == 0:
		s.dropChunk(c)
	case c+1 < len(s.chunks) && len(chunk)+len(s.chunks[c+1]) <= chunkMax/2:
		s.chunks[c] = append(chunk, s.chunks[c+1]...)
		s.dropChunk(c + 1)
	}
	return true
}

func (s *sorted[T]) dropChunk(c int) {
	if c == 0 {
		s.chunks[0] = nil
		s.chunks, s.lows = s.chunks[1:], s.lows[min(1, len(s.lows)):]
		return
	}
	s.chunks, s.lows = slices.Delete(s.chunks, c, c+1), slices.Delete(s.lows, c-1, c)
}

// cursor walks a sorted list that does not change meanwhile.
type cursor[T before[T]] struct {
	list *sorted[T]
	c, i int
}

// from returns a cursor at the first item that is not before the given one.
func (s *sorted[T]) from(item T) cursor[T] {
	c, i, _ := s.find(item)
	return cursor[T]{list: s, c: c, i: i}.settle()
}

func (s *sorted[T]) start() cursor[T] { return cursor[T]{list: s} }

// end returns a cursor behind the last item.
func (s *sorted[T]) end() cursor[T] { return cursor[T]{list: s, c: len(s.chunks)} }

func (k cursor[T]) settle() cursor[T] {
	if k.c < len(k.list.chunks) && k.i >= len(k.list.chunks[k.c]) {
		k.c, k.i = k.c+1, 0
	}
	return k
}

// item returns the item under the cursor.
func (k *cursor[T]) item() (item T, ok bool) {
	if k.c >= len(k.list.chunks) {
		return item, false
	}
	return k.list.chunks[k.c][k.i], true
}

func (k *cursor[T]) next() {
	k.i++
	*k = k.settle()
}

// prev steps back and reports whether there was anything before.
func (k *cursor[T]) prev() bool {
	if k.i == 0 {
		if k.c == 0 {
			return false
		}
		k.c--
		k.i = len(k.list.chunks[k.c])
	}
	k.i--
	return true
}

// pass moves over an item, up or down, and returns it.
func (k *cursor[T]) pass(down bool) (item T, ok bool) {
	if down {
		if !k.prev() {
			return item, false
		}
		return k.item()
	}
	if item, ok = k.item(); ok {
		k.next()
	}
	return item, ok
}
