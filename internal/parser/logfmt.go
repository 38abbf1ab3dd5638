package parser

import (
	"bytes"

	"github.com/tinylib/msgp/msgp"
)

// parseLogfmt reads key=value, key="a value" and bare keys, which are true.
func (p *Parser) parseLogfmt(w *writer, text []byte) error {
	w.open(len(text)/2 + 1)
	var key, plain []byte
	for {
		for len(text) > 0 && !isKeyByte(text[0]) {
			text = text[1:]
		}
		if len(text) == 0 {
			return w.close()
		}
		n := 0
		for n < len(text) && isKeyByte(text[n]) {
			n++
		}
		name := string(text[:n])
		key, text = msgp.AppendString(key[:0], name), text[n:]
		if len(text) == 0 || text[0] != '=' {
			if p.options.LogfmtNoBareKeys {
				return ErrNoFit
			}
			w.fields++
			w.out = msgp.AppendBool(append(w.out, key...), true)
			continue
		}
		if text = text[1:]; len(text) > 0 && text[0] == '"' {
			end := quoteEnd(text)
			plain = unescape(plain[:0], text[1:end], true)
			w.field(name, key, plain)
			text = text[min(end+1, len(text)):]
			continue
		}
		end := bytes.IndexAny(text, " \t\r\n")
		if end < 0 {
			end = len(text)
		}
		w.field(name, key, text[:end])
		text = text[end:]
	}
}

func isKeyByte(c byte) bool { return c > ' ' && c != '=' && c != '"' && c != 0x7f }

// quoteEnd is the place of the quote that ends the text beginning with one, or
// the end of the text.
func quoteEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}
