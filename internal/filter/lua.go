package filter

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/reprisehq/reprise/internal/record"
)

// LuaOptions are the settings of the filter lua.
type LuaOptions struct {
	Source string // the script, or what stands behind code
	Name   string // of the script, for messages
	Call   string // the function that is called for each record

	TypeIntKeys   []string // fields that are written as whole numbers
	TypeArrayKeys []string // fields that are written as arrays, also when they are empty
	TimeAsTable   bool     // the time is {sec=, nsec=}, not a float
	EnableNull    bool     // null is flb_null, not nil

	Print func(text string) // gets what the script prints; nil = nobody
}

// luaFilter calls a function of a script: (tag, time, record), or with five
// parameters (tag, time, group, metadata, record).
type luaFilter struct {
	o    LuaOptions
	null lua.LValue

	mu    sync.Mutex // guards the machine
	state *lua.LState
	limit *luaLimit
	call  *lua.LFunction
}

// NewLua makes the filter that calls a script. A call that fails, or does more
// than luaStepsMax steps, leaves the record as it is.
func NewLua(o LuaOptions) (Filter, error) {
	if o.Name == "" {
		o.Name = "code"
	}
	f := &luaFilter{o: o, null: lua.LNil}
	var err error
	if f.state, f.limit, err = newLuaState(o); err != nil {
		return nil, fmt.Errorf("filter lua: %w", err)
	}
	if o.EnableNull {
		f.null = f.state.NewUserData()
		f.state.SetGlobal("flb_null", f.null)
	}
	if err = f.limit.run(f.state, o); err != nil {
		return nil, fmt.Errorf("filter lua: the script %s: %w", o.Name, err)
	}
	var ok bool
	if f.call, ok = f.state.GetGlobal(o.Call).(*lua.LFunction); !ok {
		return nil, fmt.Errorf("filter lua: call %q is no function of the script %s", o.Call, o.Name)
	}
	return f, nil
}

// Answers of a script.
const (
	luaDrop    = -1
	luaKeep    = 0
	luaReplace = 1 // the time and the record
	luaRecord  = 2 // the record only
)

func (f *luaFilter) Filter(in Input, out *Output) Verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit.reset()
	verdict, err := f.ask(in, out)
	if err != nil {
		out.Trouble = fmt.Errorf("filter lua: %s: %w", f.o.Call, err)
		return Keep
	}
	return verdict
}

func (f *luaFilter) ask(in Input, out *Output) (Verdict, error) {
	l := f.state
	wide := f.call.Proto != nil && f.call.Proto.NumParameters == 5
	args := []lua.LValue{lua.LString(in.Tag), f.timeOf(in.Time)}
	results := 3
	if wide {
		args, results = append(args, l.NewTable(), f.toLua(in.Meta, 0)), 4
	}
	args = append(args, f.toLua(in.Body, 0))
	defer l.SetTop(l.GetTop())
	if err := l.CallByParam(lua.P{Fn: f.call, NRet: results, Protect: true}, args...); err != nil {
		return Keep, luaError(err)
	}
	code, ok := l.Get(-results).(lua.LNumber)
	if !ok {
		return Keep, fmt.Errorf("the first value it returns is %s, not the code -1, 0, 1 or 2", l.Get(-results).Type())
	}
	t, meta := in.Time, in.Meta
	switch code {
	case luaDrop:
		return Dropped, nil
	case luaKeep:
		return Keep, nil
	case luaReplace:
		if t, ok = fromLuaTime(l.Get(-results+1), in.Time); !ok {
			return Keep, errors.New("the time it returns is neither a number nor a table {sec=, nsec=}")
		}
	case luaRecord:
	default:
		return Keep, fmt.Errorf("it returns the code %v; the codes are -1, 0, 1 and 2", code)
	}
	table, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return Keep, fmt.Errorf("the record it returns is %s, not a table", l.Get(-1).Type())
	}
	w := luaWriter{f: f, s: scratches.Get().(*scratch)}
	defer scratches.Put(w.s)
	metas := lua.LNil
	if wide {
		metas = l.Get(-2)
	}
	return w.events(out, t, meta, in.Body, table, metas)
}

// timeOf is a time as scripts get it.
func (f *luaFilter) timeOf(t record.Time) lua.LValue {
	if !f.o.TimeAsTable {
		return lua.LNumber(float64(t.Sec) + float64(t.Nsec)/1e9)
	}
	table := f.state.NewTable()
	table.RawSetString("sec", lua.LNumber(t.Sec))
	table.RawSetString("nsec", lua.LNumber(t.Nsec))
	return table
}

// fromLuaTime is a time that a script returned; one that it did not change keeps
// the digits that a float has no room for.
func fromLuaTime(value lua.LValue, was record.Time) (record.Time, bool) {
	sec, nsec := math.NaN(), 0.0
	switch value := value.(type) {
	case lua.LNumber:
		if float64(value) == float64(was.Sec)+float64(was.Nsec)/1e9 {
			return was, true
		}
		sec = math.Floor(float64(value))
		nsec = math.Round((float64(value) - sec) * 1e9)
	case *lua.LTable:
		s, ok1 := value.RawGetString("sec").(lua.LNumber)
		n, ok2 := value.RawGetString("nsec").(lua.LNumber)
		if ok1 && ok2 {
			sec, nsec = float64(s), float64(n)
		}
	}
	if !(math.Abs(sec) < 1<<50 && nsec >= 0 && nsec <= 1e9) {
		return was, false
	}
	if nsec == 1e9 {
		sec, nsec = sec+1, 0
	}
	return record.Time{Sec: int64(sec), Nsec: uint32(nsec)}, true
}

// luaError is the message of a script's error without the trace.
func luaError(err error) error {
	var e *lua.ApiError
	if errors.As(err, &e) && e.Object != nil && e.Object != lua.LNil {
		return errors.New(e.Object.String())
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(first)
}
