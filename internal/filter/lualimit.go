package filter

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	luaparse "github.com/yuin/gopher-lua/parse"
)

// The limits of one call of a script. They keep a mistake in it from stopping a
// pipeline or eating the memory. What a script keeps in globals from call to
// call, and the time of string.find and gsub in a long text, are its own affair.
const (
	luaStepsMax = 2_000_000 // instructions, some 0.2 s
	luaTextMax  = 64 << 20  // bytes of texts that it makes
)

var (
	errLuaSteps = fmt.Errorf("it was stopped after %d steps", luaStepsMax)
	errLuaText  = fmt.Errorf("it was stopped: it made more than %d bytes of text", luaTextMax)
)

// luaLimit counts the steps of a machine, which asks the context before each
// whether it is done, and the bytes of the texts that are made.
type luaLimit struct {
	steps, bytes int
	over         chan struct{} // closed
}

func (*luaLimit) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*luaLimit) Value(any) any               { return nil }
func (*luaLimit) Err() error                  { return errLuaSteps }

// Done is called once for each step.
func (m *luaLimit) Done() <-chan struct{} {
	if m.steps++; m.steps > luaStepsMax {
		return m.over
	}
	return nil
}

func (m *luaLimit) reset() { m.steps, m.bytes = 0, 0 }

// make counts bytes of texts before they are made.
func (m *luaLimit) make(l *lua.LState, bytes int) {
	if bytes < 0 || bytes > luaTextMax {
		bytes = luaTextMax + 1
	}
	if m.bytes += bytes; m.bytes > luaTextMax {
		l.RaiseError("%s", errLuaText.Error())
	}
}

// concatName is the function that `..` calls; no script can write the name.
const concatName = "concat "

// run compiles a script and runs it once, so that its functions are there.
func (m *luaLimit) run(l *lua.LState, o LuaOptions) error {
	chunk, err := luaparse.Parse(strings.NewReader(o.Source), o.Name)
	if err != nil {
		return errors.New(strings.TrimSpace(err.Error()))
	}
	replaceConcat(reflect.ValueOf(chunk))
	proto, err := lua.Compile(chunk, o.Name)
	if err != nil {
		return err
	}
	if err := l.CallByParam(lua.P{Fn: l.NewFunctionFromProto(proto), Protect: true}); err != nil {
		return luaError(err)
	}
	return nil
}

// replaceConcat makes each `a .. b` below a value a call, so that it is counted.
func replaceConcat(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			replaceConcat(v.Index(i))
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		replaceConcat(v.Elem())
		if concat, ok := v.Interface().(*ast.StringConcatOpExpr); ok && v.Kind() == reflect.Interface {
			name := &ast.IdentExpr{Value: concatName}
			call := &ast.FuncCallExpr{Func: name, Args: []ast.Expr{concat.Lhs, concat.Rhs}}
			for _, e := range []ast.Expr{name, call} {
				e.SetLine(concat.Line())
				e.SetLastLine(concat.LastLine())
			}
			v.Set(reflect.ValueOf(call))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				replaceConcat(v.Field(i))
			}
		}
	}
}

// newLuaState makes a machine with the libraries that a filter needs: none that
// reach files, processes or other scripts.
func newLuaState(o LuaOptions) (*lua.LState, *luaLimit, error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: 200, RegistrySize: 1 << 10, RegistryMaxSize: 1 << 18, RegistryGrowStep: 1 << 10})
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString, lua.MathLibName: lua.OpenMath, lua.OsLibName: lua.OpenOs,
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range []string{"dofile", "load", "loadfile", "loadstring", "module", "require", "newproxy", "_printregs", "collectgarbage"} {
		l.SetGlobal(name, lua.LNil)
	}
	system := l.GetGlobal("os").(*lua.LTable)
	for _, name := range []string{"execute", "exit", "remove", "rename", "tmpname", "setenv", "setlocale"} {
		system.RawSetString(name, lua.LNil)
	}
	l.SetGlobal("print", l.NewFunction(func(l *lua.LState) int {
		var words []string
		for i := 1; i <= l.GetTop(); i++ {
			words = append(words, l.ToStringMeta(l.Get(i)).String())
		}
		if o.Print != nil {
			o.Print(strings.Join(words, "\t"))
		}
		return 0
	}))
	limit := &luaLimit{over: make(chan struct{})}
	close(limit.over)
	limit.guard(l)
	l.SetContext(limit)
	return l, limit, nil
}

// guard puts a count in front of the functions that make large texts.
func (m *luaLimit) guard(l *lua.LState) {
	l.SetGlobal(concatName, l.NewFunction(func(l *lua.LState) int {
		for i := 1; i <= 2; i++ {
			if v := l.Get(i); !lua.LVCanConvToString(v) {
				l.RaiseError("attempt to concatenate a %s value", v.Type())
			}
		}
		a, b := lua.LVAsString(l.Get(1)), lua.LVAsString(l.Get(2))
		m.make(l, len(a)+len(b))
		l.Push(lua.LString(a + b))
		return 1
	}))
	texts, tables := l.GetGlobal("string").(*lua.LTable), l.GetGlobal("table").(*lua.LTable)
	before := func(library *lua.LTable, name string, count func(l *lua.LState)) {
		plain := library.RawGetString(name).(*lua.LFunction).GFunction
		library.RawSetString(name, l.NewFunction(func(l *lua.LState) int {
			count(l)
			return plain(l)
		}))
	}
	for _, name := range []string{"upper", "lower", "reverse"} {
		before(texts, name, func(l *lua.LState) { m.make(l, len(l.CheckString(1))) })
	}
	before(texts, "rep", func(l *lua.LState) {
		if n := l.CheckInt(2); n > 0 {
			m.make(l, len(l.CheckString(1))*min(n, luaTextMax+1))
		}
	})
	wide := regexp.MustCompile(`%[^a-zA-Z%]*[0-9]{3}`)
	before(texts, "format", func(l *lua.LState) {
		format := l.CheckString(1)
		if wide.MatchString(format) {
			l.RaiseError("a width in a format has more than two digits")
		}
		bytes := 100 * len(format)
		for i := 2; i <= l.GetTop(); i++ {
			bytes += len(lua.LVAsString(l.Get(i)))
		}
		m.make(l, bytes)
	})
	before(tables, "concat", func(l *lua.LState) {
		table, gap, bytes := l.CheckTable(1), len(l.OptString(2, "")), 0
		for i := l.OptInt(3, 1); i <= l.OptInt(4, table.Len()) && bytes <= luaTextMax; i++ {
			bytes += gap + len(lua.LVAsString(table.RawGetInt(i)))
		}
		m.make(l, bytes)
	})
	before(texts, "gsub", func(l *lua.LState) { m.gsub(l) })
}

// gsub counts each piece that is put in when it comes; of a text that has
// captures in it, all that it may come to.
func (m *luaLimit) gsub(l *lua.LState) {
	text, with := l.CheckString(1), l.Get(3)
	m.make(l, len(text))
	if fixed, ok := with.(lua.LString); ok && strings.Contains(string(fixed), "%") {
		m.make(l, (len(text)+1)*len(fixed))
		return
	}
	l.Replace(3, l.NewFunction(func(l *lua.LState) int {
		piece := with
		switch with := with.(type) {
		case *lua.LTable:
			piece = l.GetTable(with, l.Get(1))
		case *lua.LFunction:
			n := l.GetTop()
			l.Push(with)
			for i := 1; i <= n; i++ {
				l.Push(l.Get(i))
			}
			l.Call(n, 1)
			piece = l.Get(-1)
		}
		m.make(l, len(lua.LVAsString(piece)))
		l.Push(piece)
		return 1
	}))
}
