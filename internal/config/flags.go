package config

import (
	"strings"

	"github.com/spf13/pflag"
)

// AddFlags declares a flag for every setting, and those of Zizq that are
// accepted without meaning. Their values are looked at by Load only, so that
// all problems are told together.
func AddFlags(fs *pflag.FlagSet) {
	for _, s := range settings {
		v := &flagValue{kind: s.kind, text: []string{s.def}}
		add(fs, s.name, s.letter, s.help, v, s.hidden)
		for _, a := range s.also {
			kind := "word"
			if s.kind == "bool" {
				kind = "bool" // given without a value, as --no-admin
			}
			add(fs, a.name, "", "the same as --"+s.name, &flagValue{kind: kind}, true)
		}
	}
	for _, f := range foreigners {
		if f.only {
			continue
		}
		v := &flagValue{kind: "text"}
		if f.isBool {
			v.kind = "bool"
		}
		add(fs, f.name, f.short, "Zizq's; means nothing here", v, true)
	}
}

func add(fs *pflag.FlagSet, name, short, help string, v *flagValue, hidden bool) {
	flag := fs.VarPF(v, name, short, help)
	flag.Hidden = hidden
	if v.kind == "bool" {
		flag.NoOptDefVal = "true"
	}
}

// FlagSections groups the flags of AddFlags for a help text.
func FlagSections(fs *pflag.FlagSet) []FlagSection {
	var out []FlagSection
	for _, s := range settings {
		if len(out) == 0 || out[len(out)-1].Title != s.section {
			out = append(out, FlagSection{s.section, pflag.NewFlagSet(s.section, pflag.ContinueOnError)})
			out[len(out)-1].Flags.SortFlags = false
		}
		if flag := fs.Lookup(s.name); flag != nil {
			out[len(out)-1].Flags.AddFlag(flag)
		}
	}
	return out
}

// FlagSection is some flags under a title.
type FlagSection struct {
	Title string
	Flags *pflag.FlagSet
}

// flagValue keeps what was written behind a flag.
type flagValue struct {
	kind  string
	text  []string
	given bool
}

func (v *flagValue) String() string { return strings.Join(v.text, ",") }
func (v *flagValue) Type() string   { return v.kind }

func (v *flagValue) Set(s string) error {
	if !v.given {
		v.text = nil
	}
	v.given, v.text = true, append(v.text, s)
	return nil
}
