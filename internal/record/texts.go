package record

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Texts reads JSON texts that stand one behind another in a stream.
type Texts struct {
	in   bounded
	rest io.Reader // what the decoder reads: in, behind what was read ahead of it before
	dec  *jsontext.Decoder
	most int
}

// ErrLong refuses a text that is longer than it may be.
var ErrLong = errors.New("a text of JSON is longer than it may be")

// bounded fails when more is read of one text than it may have.
type bounded struct {
	io.Reader
	left int
}

func (b *bounded) Read(dst []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrLong
	}
	n, err := b.Reader.Read(dst[:min(len(dst), b.left)])
	b.left -= n
	return n, err
}

// NewTexts reads texts of at most so many bytes.
func NewTexts(r io.Reader, bytesMax int) *Texts {
	t := &Texts{in: bounded{Reader: r}, most: bytesMax}
	t.begin(&t.in)
	return t
}

func (t *Texts) begin(rest io.Reader) {
	t.rest = rest
	t.dec = jsontext.NewDecoder(rest, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Next returns the next text, which is good until it is called again, and io.EOF at the end
// of the stream. ErrJSON means that there was no JSON, and ErrLong that it was too long: the
// rest of its line is left, and Next may be called again.
func (t *Texts) Next() ([]byte, error) {
	t.in.left = t.most
	text, err := t.dec.ReadValue()
	if err == nil {
		return text, nil
	}
	var wrong *jsontext.SyntacticError
	switch {
	case errors.Is(err, ErrLong):
		err = ErrLong
	case !errors.As(err, &wrong):
		return nil, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		t.begin(&t.in) // nothing comes any more
		return nil, ErrJSON
	default:
		err = ErrJSON
	}
	if err2 := t.leaveLine(); err2 != nil {
		return nil, err2
	}
	return nil, err
}

// leaveLine goes on behind the line in which there is no JSON.
func (t *Texts) leaveLine() error {
	ahead := bytes.Clone(t.dec.UnreadBuffer())
	block := make([]byte, 4<<10)
	for {
		if i := bytes.IndexByte(ahead, '\n'); i >= 0 {
			t.begin(io.MultiReader(bytes.NewReader(ahead[i+1:]), t.rest))
			return nil
		}
		t.in.left = t.most
		n, err := t.rest.Read(block)
		if ahead = append(ahead[:0], block[:n]...); err != nil && n == 0 {
			t.begin(&t.in)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
