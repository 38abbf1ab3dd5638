package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/jq"
)

// Key is where the group of a message stands: in a header, at a path of its
// payload, or in what an expression makes of that.
type Key struct {
	header string
	json   string // as it was given
	path   []step // of json
	jq     string
	prog   *jq.Program
}

// step goes into a member of an object, or an element of an array.
type step struct {
	name  string
	index int // -1 = a member
}

// groupMax is the longest group, in bytes.
const groupMax = 1024

// jqLimits bound the expression over one payload.
var jqLimits = jq.Limits{Time: 100 * time.Millisecond, Bytes: 4 << 20}

// pathKey reads a path such as .order.lines[0].id or ."a b".
func pathKey(text string) (*Key, error) {
	k := &Key{json: text}
	bad := func() error {
		return refuse("group.json", "group.json must be a path such as .orderId or .order.ids[0], not "+strconv.Quote(shorten(text)))
	}
	for rest := text; rest != ""; {
		switch {
		case strings.HasPrefix(rest, `."`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil {
				return nil, bad()
			}
			name, _ := strconv.Unquote(quoted)
			k.path, rest = append(k.path, step{name, -1}), rest[1+len(quoted):]
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], `.["`)
			if end < 0 {
				end = len(rest) - 1
			}
			if end == 0 {
				return nil, bad()
			}
			k.path, rest = append(k.path, step{rest[1 : 1+end], -1}), rest[1+end:]
		case rest[0] == '[':
			digits, after, closed := strings.Cut(rest[1:], "]")
			n, err := strconv.ParseUint(digits, 10, 31)
			if err != nil || !closed {
				return nil, bad()
			}
			k.path, rest = append(k.path, step{"", int(n)}), after
		default:
			return nil, bad()
		}
	}
	if k.path == nil {
		return nil, bad()
	}
	return k, nil
}

func jqKey(text string) (*Key, error) {
	prog, err := jq.Compile(text)
	if err != nil {
		return nil, refuse("group.jq", "group.jq is no expression: "+shorten(err.Error()))
	}
	return &Key{jq: text, prog: prog}, nil
}

// of finds the group of a message. Its error concerns this message only.
func (k *Key) of(ctx context.Context, m *Message) (string, error) {
	group, why := "", ""
	switch {
	case k.header != "":
		if group = m.header(k.header); group == "" {
			why = "the header " + k.header + " is missing, which tells the group of a message"
		}
	case k.prog != nil:
		group, why = k.judged(ctx, m.Payload)
	default:
		group, why = k.follow(m.Payload)
	}
	switch {
	case why != "":
	case len(group) > groupMax:
		why = "is longer than " + strconv.Itoa(groupMax) + " bytes"
	case strings.ContainsRune(group, 0):
		why = "contains null bytes"
	}
	if why != "" {
		return "", refuse("group", "the message has no group: "+why)
	}
	return group, ctx.Err()
}

func (k *Key) judged(ctx context.Context, payload []byte) (group, why string) {
	outputs, err := k.prog.Run(ctx, jqLimits, 2, payload)
	n := len(outputs)
	if n > 0 {
		switch first := outputs[0]; first[0] {
		case 'n':
			why = "the expression gives null"
		case '[', '{':
			why = "the expression must give a text, a number or a truth value"
		case '"':
			text, _ := jsontext.AppendUnquote(nil, first) // it was written as JSON
			group = string(text)
		default:
			group = string(first)
		}
	}
	switch {
	case err != nil:
		why = "the expression " + k.jq + " fails: " + shorten(err.Error())
	case n == 0 || why == "" && group == "":
		why = "the expression gives nothing"
	case n > 1:
		why = "the expression gives more than one value"
	}
	return group, why
}

var errGone = errors.New("is missing")

// follow walks the path, reading no more of the payload than it has to.
func (k *Key) follow(payload []byte) (group, why string) {
	own := followers.Get().(*follower)
	defer own.free()
	d := own.over(payload)
	for _, s := range k.path {
		if err := s.enter(d); err != nil {
			return "", fmt.Sprintf("%s of the payload %v", k.json, err)
		}
	}
	kind := d.PeekKind()
	if kind == jsontext.KindNull {
		return "", k.json + " of the payload is null"
	}
	if kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray {
		return "", k.json + " of the payload must be a text, a number or a truth value"
	}
	token, err := d.ReadToken()
	if group = token.String(); err != nil || group == "" {
		return "", k.json + " of the payload is empty"
	}
	return group, ""
}

// follower is a decoder that is used for one payload after the other.
type follower struct {
	dec  jsontext.Decoder
	from bytes.Buffer
}

var followers = sync.Pool{New: func() any { return new(follower) }}

func (f *follower) over(payload []byte) *jsontext.Decoder {
	f.from = *bytes.NewBuffer(payload)
	f.dec.Reset(&f.from, jsontext.AllowDuplicateNames(true))
	return &f.dec
}

func (f *follower) free() {
	f.over(nil) // the payload is not its own
	followers.Put(f)
}

// enter moves the decoder to the value of a member or an element.
func (s step) enter(d *jsontext.Decoder) error {
	want := jsontext.KindBeginObject
	if s.index >= 0 {
		want = jsontext.KindBeginArray
	}
	if d.PeekKind() != want {
		return errGone
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for at := 0; ; at++ {
		if kind := d.PeekKind(); kind == jsontext.KindEndObject || kind == jsontext.KindEndArray || kind == jsontext.KindInvalid {
			return errGone
		}
		if s.index < 0 {
			name, err := d.ReadValue()
			if err != nil {
				return err
			}
			if s.named(name) {
				return nil
			}
		} else if at == s.index {
			return nil
		}
		if err := d.SkipValue(); err != nil {
			return err
		}
	}
}

// named reports whether a name as it is written in JSON is that of the step.
func (s step) named(written []byte) bool {
	if bare := written[1 : len(written)-1]; bytes.IndexByte(bare, '\\') < 0 && utf8.Valid(bare) {
		return string(bare) == s.name
	}
	name, _ := jsontext.AppendUnquote(nil, written) // what is not UTF-8 is replaced
	return string(name) == s.name
}

// canonical writes the name of a header as this package keeps it.
func canonical(name string) string {
	if own, ok := spelled[name]; ok {
		return own
	}
	if own, ok := spelled[strings.ToLower(name)]; ok {
		return own
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}

// wrongHeader says why a text cannot name a header.
func wrongHeader(name string) string {
	switch {
	case name == "":
		return "must have a name"
	case len(name) > 256:
		return "must not be longer than 256 bytes"
	}
	for i := range len(name) {
		if !inHeaders[name[i]] {
			return "must be made of letters, digits and hyphens"
		}
	}
	return ""
}

// inHeaders are the bytes that the name of a header is made of.
var inHeaders = func() (set [256]bool) {
	for _, b := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!#$%&'*+^`|~") {
		set[b] = true
	}
	return set
}()
