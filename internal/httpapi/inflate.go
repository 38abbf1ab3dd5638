package httpapi

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/reprisehq/reprise/wire"
)

// inflateMost is how many times larger a compressed body may become. What it
// becomes counts for --body-max and max_inflight_bytes like any other.
const inflateMost = 100

var errEncoding = &refusal{
	http.StatusUnsupportedMediaType, wire.CodeUnsupportedMedia,
	"unsupported content encoding; send the body as it is, or with Content-Encoding: gzip",
}

// inflate makes the reader read what a body means. done gives memory back.
func (m *bodyReader) inflate(encodings []string) (done func(), err error) {
	done = func() {}
	switch encoding := strings.ToLower(strings.TrimSpace(strings.Join(encodings, ","))); encoding {
	case "", "identity":
		return done, nil
	case "gzip", "x-gzip":
	default:
		return done, errEncoding
	}
	in := &counted{from: m.from}
	unzip := unzips.Get().(*gzip.Reader)
	done = func() { unzips.Put(unzip) }
	if err := unzip.Reset(in); err != nil {
		return done, notGzip(err)
	}
	m.from = &inflater{in, unzip, 0}
	return done, nil
}

var unzips = sync.Pool{New: func() any { return new(gzip.Reader) }}

func notGzip(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &refusal{http.StatusBadRequest, wire.CodeInvalid, "the body is not gzip: " + err.Error()}
}

// inflater reads at most inflateMost bytes for each that came in.
type inflater struct {
	in    *counted
	unzip *gzip.Reader
	out   int64
}

func (f *inflater) Read(p []byte) (int, error) {
	n, err := f.unzip.Read(p)
	f.out += int64(n)
	switch {
	case f.out > inflateMost*f.in.n:
		return n, &refusal{
			http.StatusRequestEntityTooLarge, wire.CodeTooLarge,
			"the body inflates to more than " + itoa(inflateMost) + " times its size; send it as it is",
		}
	case err != nil && !errors.Is(err, io.EOF):
		return n, notGzip(err)
	}
	return n, err
}

// counted counts what is read.
type counted struct {
	from io.Reader
	n    int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}
