package parser

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/record"
)

// ErrNoFit says that a text is not of the parser's form.
var ErrNoFit = errors.New("the text does not have the form of the parser")

// Options are the settings of a [PARSER]. The zero value of each is the
// original's default.
type Options struct {
	Name   string
	Format string // json, regex, logfmt, ltsv
	Regex  string

	// With a TimeFormat the time of a record is read from its field TimeKey
	// ("" = time), which is then taken out of the record, if not TimeKeep. A
	// field that holds no such time stays, and the record gets the time it came at.
	TimeKey            string
	TimeFormat         string // as for strptime; %L is a fraction of a second
	TimeOffset         string // of times that name no zone, as +0200
	TimeKeep           bool
	TimeLenient        bool // Time_Strict off: the fraction may be missing
	TimeSystemTimezone bool // times that name no zone are of System
	System             *time.Location

	Types            string // field:type ...; integer, float, bool, hex, string
	KeepEmptyValues  bool   // Skip_Empty_Values off
	LogfmtNoBareKeys bool
	DecodeFields     []Decoder // Decode_Field and Decode_Field_As in their order
}

// Parser makes records of texts. It may be used by many goroutines.
type Parser struct {
	options  Options
	expr     *Expr
	names    [][]byte // of the expression's groups, as raw MessagePack
	types    map[string]fieldType
	time     *timeFormat
	timeKey  string
	decoders []*decoder
}

// New makes a parser, or says what is wrong with its settings.
func New(o Options) (*Parser, error) {
	p := &Parser{options: o, timeKey: o.TimeKey}
	var problems []error
	switch o.Format {
	case "json", "logfmt", "ltsv":
		if o.Regex != "" {
			problems = append(problems, fmt.Errorf("regex is for format regex, and the format is %s", o.Format))
		}
	case "regex":
		if o.Regex == "" {
			problems = append(problems, errors.New("format regex needs a regex"))
			break
		}
		var err error
		if p.expr, err = Compile(o.Regex); err != nil {
			problems = append(problems, err)
			break
		}
		named := 0
		for _, name := range p.expr.Names() {
			if name != "" {
				named++
			}
			p.names = append(p.names, msgp.AppendString(nil, name))
		}
		if named == 0 {
			problems = append(problems, fmt.Errorf("the regular expression %q names no group; write (?<name>...)", o.Regex))
		}
	default:
		problems = append(problems, fmt.Errorf("format %q is not known; the formats are json, regex, logfmt and ltsv", o.Format))
	}
	var err error
	if p.types, err = parseTypes(o.Types); err != nil {
		problems = append(problems, err)
	}
	if p.decoders, err = newDecoders(o.DecodeFields); err != nil {
		problems = append(problems, err)
	}
	if err = p.setTime(); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("parser %s: %w", o.Name, err)
	}
	return p, nil
}

func (p *Parser) setTime() error {
	o := p.options
	if p.timeKey == "" {
		p.timeKey = "time"
	}
	if o.TimeFormat == "" {
		return nil
	}
	zone := time.UTC
	if o.TimeSystemTimezone {
		if zone = o.System; zone == nil {
			zone = time.Local
		}
	} else if o.TimeOffset != "" {
		var err error
		if zone, err = fixedZone(o.TimeOffset); err != nil {
			return err
		}
	}
	var err error
	p.time, err = newTimeFormat(o.TimeFormat, zone, o.TimeLenient)
	return err
}

// Name is the name of the parser.
func (p *Parser) Name() string { return p.options.Name }

// Notice is what a person should know about the parser, or "".
func (p *Parser) Notice() string {
	if p.expr == nil || p.expr.Notice() == "" {
		return ""
	}
	return "parser " + p.options.Name + ": " + p.expr.Notice()
}

// Parse appends the raw body of a text to dst. The time is that of the text, or
// now. A text that does not fit is ErrNoFit, one that takes too long ErrSlow;
// dst is then as it was.
func (p *Parser) Parse(dst, text []byte, now record.Time) (out []byte, t record.Time, err error) {
	w := &writer{p: p, time: now, now: now, begin: len(dst), out: dst}
	switch p.options.Format {
	case "json":
		err = p.parseJSON(w, text)
	case "logfmt":
		err = p.parseLogfmt(w, text)
	case "ltsv":
		err = p.parseLTSV(w, text)
	default:
		err = p.parseRegex(w, text)
	}
	if err == nil && len(p.decoders) > 0 {
		err = p.decode(w)
	}
	if err != nil {
		return dst, now, err
	}
	return w.out, w.time, nil
}

// writer is a record while it is written.
type writer struct {
	p         *Parser
	time, now record.Time
	out       []byte
	begin     int // of the map
	wide      bool
	fields    int
}

// open begins the map; most is how many fields it can have.
func (w *writer) open(most int) {
	if w.wide = most > 15; w.wide {
		w.out = append(w.out, 0xdf, 0, 0, 0, 0)
	} else {
		w.out = append(w.out, 0x80)
	}
}

// close writes the number of fields into the map's header.
func (w *writer) close() error {
	n := w.fields
	if w.wide {
		copy(w.out[w.begin+1:], []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	} else {
		w.out[w.begin] = 0x80 | byte(n)
	}
	if n == 0 && w.time == w.now {
		return ErrNoFit
	}
	return nil
}

// field writes one field, of which the value is a text; key is raw.
func (w *writer) field(name string, key, value []byte) {
	if len(value) == 0 && !w.p.options.KeepEmptyValues || w.isTime(name, value) {
		return
	}
	w.fields++
	w.out = append(w.out, key...)
	w.out = w.p.types[name].append(w.out, value)
}

// isTime reads the time from its field, and reports whether that is not to be kept.
func (w *writer) isTime(name string, value []byte) bool {
	if w.p.time == nil || name != w.p.timeKey {
		return false
	}
	t, ok := w.p.time.read(value, w.now)
	if ok {
		w.time = t
	}
	return ok && !w.p.options.TimeKeep
}

func (p *Parser) parseRegex(w *writer, text []byte) error {
	at, err := p.expr.Find(text)
	if err != nil {
		return err
	} else if at == nil {
		return ErrNoFit
	}
	w.open(len(p.names))
	for n, name := range p.expr.Names() {
		if begin, end := at[2*n], at[2*n+1]; name != "" && begin >= 0 {
			w.field(name, p.names[n], text[begin:end])
		}
	}
	return w.close()
}

var bodies = sync.Pool{New: func() any { return new(record.Body) }}

func (p *Parser) parseJSON(w *writer, text []byte) error {
	out, err := record.AppendFromJSON(w.out, text)
	if err != nil || !record.IsMap(out[w.begin:]) {
		return ErrNoFit
	}
	if w.out = out; p.time == nil {
		return nil
	}
	scratch := bodies.Get().(*record.Body)
	defer bodies.Put(scratch)
	body, err := record.ParseBody(*scratch, out[w.begin:])
	if err != nil {
		return ErrNoFit
	}
	*scratch = body
	i := body.Index(p.timeKey)
	if i < 0 {
		return nil
	}
	value := body[i].Value
	text, isText := record.Text(value)
	if !isText { // a number
		text = record.AppendPlain(nil, value)
	}
	if w.isTime(p.timeKey, text) {
		raw := body.Remove(p.timeKey).Append(nil)
		w.out = append(w.out[:w.begin], raw...)
	}
	return nil
}

// parseLTSV reads label:value, separated by tabs.
func (p *Parser) parseLTSV(w *writer, text []byte) error {
	rest := strings.TrimRight(string(text), "\r\n")
	w.open(strings.Count(rest, "\t") + 1)
	var key []byte
	for more := true; more; {
		var field string
		field, rest, more = strings.Cut(rest, "\t")
		if label, value, ok := strings.Cut(field, ":"); ok && label != "" {
			key = msgp.AppendString(key[:0], label)
			w.field(label, key, []byte(value))
		}
	}
	return w.close()
}
