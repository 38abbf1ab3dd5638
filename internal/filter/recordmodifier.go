package filter

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/record"
)

// RecordModifierOptions are the settings of the filter record_modifier.
type RecordModifierOptions struct {
	Records    []string // `key value`: fields that are set
	RemoveKeys []string
	AllowKeys  []string // Allowlist_key and Whitelist_key: all other fields are removed
	UUIDKey    string   // a field that gets a random UUID

	Random io.Reader // of UUIDs; nil = the system's
}

type recordModifier struct {
	added  []record.Field
	remove func(record.Field) bool // nil = none
	uuid   string
	random io.Reader
}

// NewRecordModifier makes the filter that sets and removes fields. A key that
// ends with * stands for all that begin so.
func NewRecordModifier(o RecordModifierOptions) (Filter, error) {
	m := &recordModifier{uuid: o.UUIDKey, random: o.Random}
	if m.random == nil {
		m.random = rand.Reader
	}
	var problems []error
	for _, text := range o.Records {
		key, value, err := pair("record", text)
		if err != nil {
			problems = append(problems, err)
		}
		m.added = append(m.added, record.Field{Key: []byte(key), Value: rawText(value)})
	}
	switch {
	case len(o.RemoveKeys) > 0 && len(o.AllowKeys) > 0:
		problems = append(problems, errors.New("remove_key and allowlist_key exclude each other; use two filters"))
	case len(o.RemoveKeys) > 0:
		m.remove = anyKey(o.RemoveKeys)
	case len(o.AllowKeys) > 0:
		allowed := anyKey(o.AllowKeys)
		m.remove = func(f record.Field) bool { return !allowed(f) }
	}
	return m, named("record_modifier", problems)
}

// anyKey chooses the fields of some keys.
func anyKey(keys []string) func(record.Field) bool {
	exact := map[string]bool{}
	var prefixes []func(record.Field) bool
	for _, key := range keys {
		if key = unquote(key); len(key) > 0 && key[len(key)-1] == '*' {
			prefixes = append(prefixes, hasPrefix(key))
		} else {
			exact[key] = true
		}
	}
	return func(f record.Field) bool {
		for _, is := range prefixes {
			if is(f) {
				return true
			}
		}
		return exact[string(f.Key)]
	}
}

func (m *recordModifier) Filter(in Input, out *Output) Verdict {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if !s.parse(in.Event) {
		return Keep
	}
	if m.remove != nil {
		s.body = s.body.RemoveFunc(m.remove)
	}
	for _, f := range m.added { // a key that stood there twice would not be taken by strict targets
		if i := s.body.Index(string(f.Key)); i >= 0 {
			s.body[i].Value = f.Value
		} else {
			s.body = append(s.body, f)
		}
	}
	if m.uuid != "" {
		id, err := newUUID(m.random)
		if err != nil {
			out.Trouble = err
			return Keep
		}
		s.body = s.body.Set(m.uuid, id)
	}
	return s.emit(out, in.Time, in.Event)
}

// newUUID is a random UUID (version 4) as a raw text.
func newUUID(random io.Reader) ([]byte, error) {
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return nil, err
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	text := make([]byte, 0, 36)
	for i, end := range []int{4, 6, 8, 10, 16} {
		begin := []int{0, 4, 6, 8, 10}[i]
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, id[begin:end])
	}
	return msgp.AppendStringFromBytes(nil, text), nil
}
