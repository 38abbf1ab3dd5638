package jq

import (
	_ "embed"
	"reflect"
	"strings"

	"github.com/itchyny/gojq"
)

//go:embed prelude.jq
var preludeText string

// call is a function as calls name it.
type call struct {
	name      string
	arguments int
}

// standIn is a function of the prelude.
type standIn struct {
	text string
	uses []call // other functions of the prelude
}

// prelude holds one definition a line; those it uses stand before it.
var prelude, preludeOrder = func() (map[call]standIn, []call) {
	all, order := map[call]standIn{}, []call(nil)
	for line := range strings.Lines(preludeText) {
		if !strings.HasPrefix(line, "def ") {
			continue
		}
		q, err := gojq.Parse(line + ".")
		if err != nil {
			panic("jq: the prelude: " + line + err.Error())
		}
		def := standIn{text: line}
		collect(reflect.ValueOf(q.FuncDefs[0].Body), func(c call) {
			if _, ok := all[c]; ok {
				def.uses = append(def.uses, c)
			}
		})
		c := call{q.FuncDefs[0].Name, len(q.FuncDefs[0].Args)}
		all[c], order = def, append(order, c)
	}
	return all, order
}()

// collect finds all calls.
func collect(v reflect.Value, found func(call)) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), found)
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		for i := range v.Elem().NumField() {
			collect(v.Elem().Field(i), found)
		}
		switch node := v.Interface().(type) {
		case *gojq.Func:
			found(call{node.Name, len(node.Args)})
		case *gojq.Query:
			if name := updates[node.Op]; name != "" {
				found(call{name, 2})
			}
		}
	}
}

var operators = map[gojq.Operator]string{
	gojq.OpAdd: "__op_add", gojq.OpSub: "__op_sub", gojq.OpMul: "__op_mul", gojq.OpDiv: "__op_div", gojq.OpMod: "__op_mod",
	gojq.OpEq: "__eq", gojq.OpNe: "__ne", gojq.OpLt: "__lt", gojq.OpLe: "__le", gojq.OpGt: "__gt", gojq.OpGe: "__ge",
}

// += and its like call these.
var updates = map[gojq.Operator]string{
	gojq.OpUpdateAdd: "_add", gojq.OpUpdateSub: "_subtract", gojq.OpUpdateMul: "_multiply",
	gojq.OpUpdateDiv: "_divide", gojq.OpUpdateMod: "_modulo",
}

// bound makes every step of an expression a bounded one: what could be a long
// one becomes a call of the prelude, of which it gets what it needs.
func bound(q *gojq.Query) {
	rewrite(reflect.ValueOf(q))
	needed := map[call]bool{}
	var need func(call)
	need = func(c call) {
		if def, ok := prelude[c]; ok && !needed[c] {
			needed[c] = true
			for _, c := range def.uses {
				need(c)
			}
		}
	}
	collect(reflect.ValueOf(q), need)
	text := ""
	for _, c := range preludeOrder {
		if needed[c] {
			text += prelude[c].text
		}
	}
	if text != "" {
		definitions, err := gojq.Parse(text + ".")
		if err != nil {
			panic("jq: the prelude: " + err.Error())
		}
		q.FuncDefs = append(definitions.FuncDefs, q.FuncDefs...)
	}
}

// rewrite goes through all of an expression, parts first.
func rewrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			rewrite(v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		for i := range v.Elem().NumField() {
			rewrite(v.Elem().Field(i))
		}
		switch node := v.Interface().(type) {
		case *gojq.Query:
			rewriteOperator(node)
		case *gojq.Term:
			rewriteText(node)
		case *gojq.Index:
			rewriteIndex(node)
		case *gojq.ObjectKeyVal:
			rewriteKey(node.KeyString)
		case *gojq.PatternObject:
			rewriteKey(node.KeyString)
		case *gojq.Func:
			node.Name = rename(node.Name, len(node.Args))
		case *gojq.FuncDef:
			rewriteDefinition(node)
		}
	}
}

// rename gives a function the name of its stand-in. What an expression defines
// itself under such a name is renamed with its calls, and so is what begins
// with an underscore: those names are the interpreter's own.
func rename(name string, arguments int) string {
	switch {
	case strings.HasPrefix(name, "_"):
		return "__own" + name
	case strings.HasPrefix(name, "op_"):
		return name
	}
	if _, ok := prelude[call{"__" + name, arguments}]; ok {
		return "__" + name
	}
	return name
}

func rewriteDefinition(def *gojq.FuncDef) {
	def.Name = rename(def.Name, len(def.Args))
	for i, name := range def.Args {
		if value, ok := strings.CutPrefix(name, "$"); !ok {
			def.Args[i] = rename(name, 0)
		} else if renamed := rename(value, 0); renamed != value { // $x is also a function x
			def.Body.FuncDefs = append([]*gojq.FuncDef{{Name: renamed, Body: calling(name)}}, def.Body.FuncDefs...)
		}
	}
}

func rewriteOperator(q *gojq.Query) {
	if name := operators[q.Op]; name != "" && q.Term == nil {
		q.Term = calling(name, q.Left, q.Right).Term
		q.Left, q.Op, q.Right = nil, 0, nil
	}
}

// rewriteText takes texts with expressions in them apart, and looks at what a
// format is applied to.
func rewriteText(t *gojq.Term) {
	switch {
	case t.Type == gojq.TermTypeString && t.Str.Queries != nil:
		inside(t, concatenation(t.Str, calling("__tostring")))
	case t.Type == gojq.TermTypeFormat && t.Str == nil:
		inside(t, formatted(t.Format))
	case t.Type == gojq.TermTypeFormat && t.Str.Queries != nil:
		inside(t, concatenation(t.Str, formatted(t.Format)))
	}
}

// inside makes a term an expression in parentheses; what follows it stays.
func inside(t *gojq.Term, q *gojq.Query) {
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: q, SuffixList: t.SuffixList}
}

func formatted(format string) *gojq.Query {
	return piped(calling("__whole"), &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFormat, Format: format}})
}

// concatenation is the sum of the parts of a text.
func concatenation(s *gojq.String, convert *gojq.Query) *gojq.Query {
	var sum *gojq.Query
	for _, part := range s.Queries {
		if part.Term == nil || part.Term.Str == nil || part.Term.Type != gojq.TermTypeString {
			part = piped(part, convert)
		}
		if sum == nil {
			sum = part
		} else {
			sum = calling("__op_add", sum, part)
		}
	}
	return sum
}

// rewriteKey does the same to the text of a key: one part is left, its sum.
func rewriteKey(s *gojq.String) {
	if s != nil && s.Queries != nil {
		sum := concatenation(s, calling("__tostring"))
		s.Queries = []*gojq.Query{{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: sum}}}
	}
}

// rewriteIndex looks at what stands in brackets, unless it is a constant that
// needs no look.
func rewriteIndex(x *gojq.Index) {
	rewriteKey(x.Str)
	if x.Start == nil || x.IsSlice {
		return
	}
	if t := x.Start.Term; t != nil && len(t.SuffixList) == 0 {
		if t.Type == gojq.TermTypeString || t.Type == gojq.TermTypeNumber && len(t.Number) < 7 {
			return
		}
	}
	x.Start = piped(x.Start, calling("__at"))
}

func calling(name string, arguments ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: arguments}}}
}

func piped(from, to *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: from, Op: gojq.OpPipe, Right: to}
}
