package spell

import (
	_ "embed"
	"slices"
	"strings"
)

// Original is a setting of one of the originals.
type Original struct {
	System string   // GridServer, correlate or Zizq
	Names  []string // what it is called there
	Here   string   // "" = there is none
	Unit   string   // of a bare number there: ms, s or min; "" = it is no span of time
	Note   string   // "" = none

	words [][2]string // there, here
}

//go:embed originals.txt
var originalsText string

// Originals are those whose names are not ours.
var Originals = readOriginals(originalsText)

func readOriginals(text string) (list []Original) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		col := strings.SplitN(line, "|", 5)
		for i := range col {
			col[i] = strings.TrimSpace(col[i])
		}
		o := Original{System: col[0], Names: strings.Split(col[1], ", "), Here: strings.TrimPrefix(col[2], "-"), Note: col[4]}
		switch unit := col[3]; {
		case strings.Contains(unit, "="):
			for pair := range strings.SplitSeq(unit, ", ") {
				there, here, _ := strings.Cut(pair, "=")
				o.words = append(o.words, [2]string{there, here})
			}
		case unit != "-":
			o.Unit = unit
		}
		list = append(list, o)
	}
	return list
}

// Find is the setting of a system that has a name, in any spelling.
func Find(system, name string) (Original, bool) {
	i := slices.IndexFunc(Originals, func(o Original) bool {
		return o.System == system && slices.ContainsFunc(o.Names, func(n string) bool { return Fold(n) == Fold(name) })
	})
	if i < 0 {
		return Original{}, false
	}
	return Originals[i], true
}

// Answer tells somebody who wrote the name with a value what to write here, as
// the end of a message that begins with the name. The value may be "".
func (o Original) Answer(value string) string {
	text := " is a setting of " + o.System + "; "
	if o.Here == "" {
		return text + "here " + strings.TrimPrefix(o.Note, "here ")
	}
	text += "here it is " + o.Here
	if o.Note != "" {
		text += ", and " + o.Note
	} else if here, ok := o.convert(value); ok {
		text += ": write " + o.Here + ": " + here
	}
	if o.Unit != "" {
		text += " (a bare number there counts " + unitNames[o.Unit] + ", and a span here names its unit)"
	}
	return text
}

var unitNames = map[string]string{"ms": "milliseconds", "s": "seconds", "min": "minutes"}

// convert is the value as it is written here.
func (o Original) convert(value string) (string, bool) {
	value = strings.Trim(value, `"`)
	for _, w := range o.words {
		if Fold(w[0]) == Fold(value) {
			return w[1], true
		}
	}
	bare := strings.Trim(value, "0123456789.") == ""
	switch {
	case o.words != nil || value == "" || len(value) > 64:
		return "", false
	case o.Unit == "min" && bare:
		return value + "m", true
	case bare:
		return value + o.Unit, true
	}
	return value, true
}
