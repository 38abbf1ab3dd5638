package ship

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/reprisehq/reprise/internal/connect"
)

// body is the buffer that a request is written from. Its length is known, so
// that servers that take no requests of unknown length take it.
type body struct {
	text    []byte // as it is written
	packed  []byte // compressed
	payload []byte // what is sent: one of these, or a chunk
	gzip    *gzip.Writer
	open    atomic.Int32 // readers: the transport may read on when the answer is there
}

// attach makes it the body of a request.
func (b *body) attach(req *http.Request) {
	if len(b.payload) == 0 {
		return // a reader without bytes would be sent as one of unknown length
	}
	req.ContentLength = int64(len(b.payload))
	req.GetBody = func() (io.ReadCloser, error) {
		b.open.Add(1)
		return &reader{Reader: *bytes.NewReader(b.payload), of: b}, nil
	}
	req.Body, _ = req.GetBody() // never fails
}

type reader struct {
	bytes.Reader
	of     *body
	closed atomic.Bool
}

func (r *reader) Close() error {
	if !r.closed.Swap(true) {
		r.of.open.Add(-1)
	}
	return nil
}

// keptBytesMax bounds a buffer that is kept for the next chunk.
const keptBytesMax = 16 << 20

// reusable reports whether nobody reads from it any more.
func (b *body) reusable() bool {
	return b.open.Load() == 0 && cap(b.text)+cap(b.packed) <= keptBytesMax
}

// The compressions, by the names that configurations use.
const (
	compressGzip   = "gzip"
	compressSnappy = "snappy" // the block format
	compressZstd   = "zstd"
)

var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic("ship: " + err.Error()) // the options are constant
	}
	return e
})

// pack makes a text what is sent. kind "" sends it as it is.
func (b *body) pack(kind string, text []byte) {
	switch kind {
	case compressGzip:
		into := bytes.NewBuffer(b.packed[:0])
		if b.gzip == nil {
			b.gzip, _ = gzip.NewWriterLevel(into, gzip.BestSpeed) // fails for unknown levels only
		} else {
			b.gzip.Reset(into)
		}
		_, _ = b.gzip.Write(text) // a buffer takes everything
		_ = b.gzip.Close()
		b.packed = into.Bytes()
	case compressSnappy:
		b.packed = s2.EncodeSnappy(b.packed[:cap(b.packed)], text)
	case compressZstd:
		b.packed = zstdEncoder().EncodeAll(text, b.packed[:0])
	default:
		b.payload = text
		return
	}
	b.payload = b.packed
}

// compression checks a name and sets the header that tells it.
func compression(name string, header http.Header, faults *connect.Faults, known ...string) string {
	if name == "" || name == "none" {
		return ""
	}
	for _, k := range known {
		if name == k {
			header.Set("Content-Encoding", name)
			return name
		}
	}
	faults.Add("compress", "is %q; it must be none, or one of %v", name, known)
	return ""
}
