package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// bench tries faults. All that change the body of a function are compiled into
// one tree, each behind a question for its number; what cannot (a constant, a
// type, a file that is not Go) has a tree of its own.
type bench struct {
	*lab
	near  bool                     // asks only the packages that the fault names
	sound map[string]time.Duration // what suites take without a fault; negative if they fail
}

// sabotage tries faults and tells each result as soon as it is known.
func sabotage(ctx context.Context, whole tree, faults []fault, near bool, tell func(*result) error, progress io.Writer) (err error) {
	l, err := newLab(whole)
	if err != nil {
		return err
	}
	b := &bench{l, near, map[string]time.Duration{}}
	defer func() { err = errors.Join(err, l.close()) }()
	alone, err := b.together(ctx, faults, progress)
	if err != nil {
		return err
	}
	n := 0
	report := func(r *result, start time.Time) error {
		n++
		r.Seconds = float64(time.Since(start).Milliseconds()) / 1000
		fmt.Fprintf(progress, "[%d/%d] %s: %s, %.1f s\n", n, len(faults), r.Fault, r, r.Seconds)
		return errors.Join(ctx.Err(), tell(r))
	}
	for i := range faults {
		if start := time.Now(); !alone[i] {
			if err := report(b.try(ctx, &faults[i], i+1), start); err != nil {
				return err
			}
		}
	}
	for i := range faults {
		if start := time.Now(); alone[i] {
			if err := report(b.tryAlone(ctx, &faults[i]), start); err != nil {
				return err
			}
		}
	}
	return nil
}

var inFault = regexp.MustCompile(`(?m)/fault/(\S+?):\d+`)

// together writes a tree with every fault that can stand beside others, and
// says which cannot.
func (b *bench) together(ctx context.Context, faults []fault, progress io.Writer) (alone map[int]bool, err error) {
	alone = map[int]bool{}
	for {
		changed, pkgs := tree{}, []string{}
		for i := range faults {
			f := &faults[i]
			if _, done := changed[f.file]; !done && strings.HasSuffix(f.file, ".go") && b.whole[f.file] != nil {
				changed[f.file] = switched(b.whole, f.file, faults, alone)
				if on := path.Join(f.pkg(), "mutant_on.go"); changed[on] == nil {
					pkgs = append(pkgs, "./"+f.pkg())
					changed[on] = mutantOn(packageName(changed[f.file]))
				}
			} else if !done {
				alone[i] = true
			}
		}
		if err := b.put(changed); err != nil {
			return nil, err
		}
		said, err := b.command(ctx, "", "go", append([]string{"build"}, pkgs...)...).CombinedOutput()
		if err == nil || ctx.Err() != nil {
			return alone, ctx.Err()
		}
		before := len(alone)
		for _, at := range inFault.FindAllStringSubmatch(string(said), -1) {
			fmt.Fprintf(progress, "%s does not compile beside others\n", at[1])
			alone[slices.IndexFunc(faults, func(f fault) bool { return f.name == at[1] })] = true
		}
		if len(alone) == before {
			return nil, fmt.Errorf("the faults do not compile together: %s", said)
		}
	}
}

func packageName(src []byte) string {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.PackageClauseOnly)
	if err != nil {
		return ""
	}
	return f.Name.Name
}

// switched is a file in which each function begins with its broken forms.
func switched(t tree, file string, faults []fault, alone map[int]bool) []byte {
	src := string(t[file])
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	broken := map[*ast.FuncDecl]string{}
	for i := range faults {
		f := &faults[i]
		if f.file != file || alone[i] {
			continue
		}
		from, to, text, wrong := f.place(src)
		alone[i] = true
		if err != nil || wrong != nil {
			continue
		}
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || fn.Name.Name == "init" {
				continue
			}
			left, right := fset.Position(fn.Body.Lbrace).Offset+1, fset.Position(fn.Body.Rbrace).Offset
			if left <= from && to <= right {
				alone[i] = false
				end := "" // nothing runs behind it
				if fn.Type.Results == nil {
					end = "return\n"
				}
				broken[fn] += fmt.Sprintf("\nif mutantOn(%d) {\n//line /fault/%s:1\n%s%s%s\n%s}", i+1, f.name, src[left:from], text, src[to:right], end)
			}
		}
		if !alone[i] {
			delete(alone, i)
		}
	}
	if err != nil {
		return t[file]
	}
	var out bytes.Buffer
	at := 0
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && broken[fn] != "" {
			p := fset.Position(fn.Body.Lbrace)
			out.WriteString(src[at:p.Offset+1] + broken[fn] + fmt.Sprintf("\n//line %s:%d\n", path.Base(file), p.Line))
			at = p.Offset + 1
		}
	}
	out.WriteString(src[at:])
	return out.Bytes()
}

// tryAlone tries a fault in a tree that has no other.
func (b *bench) tryAlone(ctx context.Context, f *fault) *result {
	text, err := f.apply(b.whole)
	if err == nil {
		err = b.whole.write(b.tree())
	}
	b.forget()
	r := &result{Fault: f.name, Breaks: f.breaks, Does: f.does, File: f.file}
	if err == nil { // without the fault first
		for _, s := range f.by {
			b.takes(ctx, s)
		}
		err = b.put(tree{f.file: []byte(text)})
		b.forget()
	}
	if err != nil {
		r.Error = err.Error()
		return r
	}
	return b.try(ctx, f, -1)
}

// try asks tests about a fault, the likely ones first, until one fails.
func (b *bench) try(ctx context.Context, f *fault, id int) *result {
	r := &result{Fault: f.name, Breaks: f.breaks, Does: f.does, File: f.file}
	list := slices.Clone(f.by)
	for _, s := range f.by {
		list = append(list, suite{pkg: s.pkg})
	}
	for _, pkg := range order {
		if !b.near && b.whole.holds(pkg) {
			list = append(list, suite{pkg: pkg})
		}
	}
	asked := map[string]bool{}
	for _, s := range list {
		if asked[s.String()] {
			continue
		}
		asked[s.String()] = true
		took := b.takes(ctx, s)
		if took < 0 {
			r.Error = fmt.Sprintf("%s fails without any fault", s)
			return r
		}
		by, err := b.run(ctx, s, id, 5*took+20*time.Second)
		if err != nil {
			r.Error = firstLines(err.Error())
			return r
		}
		if by != "" {
			r.Caught, r.By = true, s.pkg+" "+by
			return r
		}
	}
	return r
}

// takes is how long a suite takes without a fault. That a test fails says
// something only if it passes then.
func (b *bench) takes(ctx context.Context, s suite) time.Duration {
	took, known := b.sound[s.String()]
	if !known {
		start := time.Now()
		by, err := b.run(ctx, s, 0, time.Hour)
		if took = time.Since(start); by != "" || err != nil {
			took = -1
		}
		if err == nil {
			b.sound[s.String()] = took
		} else {
			took = 0 // what is wrong shows when it is asked about the fault
		}
	}
	return took
}

func firstLines(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(s string) bool { return strings.HasPrefix(s, "# ") })
	return strings.Join(lines[:min(len(lines), 2)], " ")
}
