package tail

import "github.com/reprisehq/reprise/internal/connect"

// batch is what is taken at once: events of one or more files in one buffer.
type batch struct {
	buf   []byte
	parts []part
}

// part are events of one tag that stand together.
type part struct {
	tag   string
	end   int // in buf
	count int
	at    map[string][]byte // cursors
}

func (b *batch) reset() {
	clear(b.parts)
	b.buf, b.parts = b.buf[:0], b.parts[:0]
}

func (b *batch) empty() bool  { return len(b.parts) == 0 }
func (b *batch) isFull() bool { return len(b.buf) >= batchBytesMax-batchBytesMax/16 }

// part is where the next events of a tag belong.
func (b *batch) part(tag string) *part {
	if n := len(b.parts); n > 0 && b.parts[n-1].tag == tag {
		return &b.parts[n-1]
	}
	b.parts = append(b.parts, part{tag: tag, end: len(b.buf)})
	return &b.parts[len(b.parts)-1]
}

// keep remembers a cursor with the last events; nil forgets it.
func (p *part) keep(key string, value []byte) {
	if p.at == nil {
		p.at = map[string][]byte{}
	}
	p.at[key] = value
}

// records are the parts as the intake takes them.
func (b *batch) records() []connect.Records {
	list, begin := make([]connect.Records, len(b.parts)), 0
	for i := range b.parts {
		p := &b.parts[i]
		list[i] = connect.Records{Tag: p.tag, Events: b.buf[begin:p.end:p.end], Count: p.count, At: p.at}
		begin = p.end
	}
	return list
}
