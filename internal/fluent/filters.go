package fluent

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/reprisehq/reprise/internal/door/pipeline"
	"github.com/reprisehq/reprise/internal/filter"
	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/plugin"
)

var filters = map[string]func(*loader, *plugin.Values) (filter.Filter, error){
	"grep": func(_ *loader, v *plugin.Values) (filter.Filter, error) {
		o := filter.GrepOptions{LogicalOp: v.Text("logical_op")}
		for _, s := range v.All("regex", "exclude") {
			o.Rules = append(o.Rules, filter.GrepRule{Exclude: s.Name == "exclude", Rule: s.Value})
		}
		return filter.NewGrep(o)
	},
	"modify": func(_ *loader, v *plugin.Values) (filter.Filter, error) {
		var o filter.ModifyOptions
		for _, s := range v.All("set", "add", "remove", "remove_wildcard", "remove_regex", "rename", "hard_rename",
			"copy", "hard_copy", "move_to_start", "move_to_end") {
			o.Rules = append(o.Rules, filter.ModifyRule{Kind: s.Name, Text: s.Value})
		}
		for _, s := range v.All("condition") {
			o.Conditions = append(o.Conditions, s.Value)
		}
		return filter.NewModify(o)
	},
	"record_modifier": func(_ *loader, v *plugin.Values) (filter.Filter, error) {
		o := filter.RecordModifierOptions{
			RemoveKeys: v.List("remove_key"), AllowKeys: v.List("allowlist_key"), UUIDKey: v.Text("uuid_key"),
		}
		for _, s := range v.All("record") {
			o.Records = append(o.Records, s.Value)
		}
		return filter.NewRecordModifier(o)
	},
	"parser": func(l *loader, v *plugin.Values) (filter.Filter, error) {
		o := filter.ParserOptions{KeyName: v.Text("key_name"), PreserveKey: v.Flag("preserve_key"), ReserveData: v.Flag("reserve_data"), UnescapeKey: v.Flag("unescape_key")}
		o.Parsers = l.parsersOf(v, "parser")
		return filter.NewParser(o)
	},
	"lua": func(l *loader, v *plugin.Values) (filter.Filter, error) {
		o := filter.LuaOptions{
			Source: v.Text("code"), Name: "code", Call: v.Text("call"), TypeIntKeys: parts(v, "type_int_key"), TypeArrayKeys: parts(v, "type_array_key"),
			TimeAsTable: v.Flag("time_as_table"), EnableNull: v.Flag("enable_flb_null"),
			Print: func(text string) { l.Log.Info("a script prints", "text", text) },
		}
		if path := v.Text("script"); path != "" {
			text, _, err := l.From.Read(path, scriptBytesMax)
			if errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(path) { // or beside the configuration
				text, _, err = l.From.Read(filepath.Join(filepath.Dir(l.Path), path), scriptBytesMax)
			}
			if err != nil {
				return nil, fmt.Errorf("script: %w", err)
			}
			o.Source, o.Name = string(text), path
		}
		return filter.NewLua(o)
	},
	"multiline": func(l *loader, v *plugin.Values) (filter.Filter, error) {
		return filter.NewMultiline(filter.MultilineOptions{Parsers: l.multilinesOf(v), KeyContent: v.Text("multiline.key_content")})
	},
	"nest": func(_ *loader, v *plugin.Values) (filter.Filter, error) {
		return filter.NewNest(filter.NestOptions{
			Operation: v.Text("operation"), Wildcards: v.List("wildcard"), NestUnder: v.Text("nest_under"), NestedUnder: v.Text("nested_under"),
			AddPrefix: v.Text("add_prefix"), RemovePrefix: v.Text("remove_prefix"),
		})
	},
	"rewrite_tag": func(_ *loader, v *plugin.Values) (filter.Filter, error) {
		var o filter.RewriteTagOptions
		for _, s := range v.All("rule") {
			o.Rules = append(o.Rules, s.Value)
		}
		return filter.NewRewriteTag(o)
	},
	"throttle": func(_ *loader, v *plugin.Values) (filter.Filter, error) {
		return filter.NewThrottle(filter.ThrottleOptions{Rate: v.Number("rate"), Window: int(v.Int("window")), Interval: v.Span("interval")})
	},
}

// scriptBytesMax bounds a script.
const scriptBytesMax = 1 << 20

func parts(v *plugin.Values, property string) (list []string) {
	for _, s := range v.All(property) {
		list = append(list, s.Parts()...)
	}
	return list
}

func (l *loader) filter(plan *pipeline.Plan, s *fluentconf.Section) {
	v, name := l.read(s)
	if v == nil {
		return
	}
	make, is := filters[strings.ToLower(v.Plugin.Name)]
	if !is {
		l.Problem(v.At, "filter %s does not run here yet; docs/pipeline.md lists what does", v.Plugin.Name)
		return
	}
	match := l.match(v)
	does, err := make(l, v)
	if l.made(v, err) {
		plan.Filters = append(plan.Filters, &pipeline.Filter{Name: name, Match: match, Does: does})
	}
}
