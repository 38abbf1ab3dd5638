package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bench is where faults are tried: a directory with one tree at a time, at the
// same path, so that Go compiles again only what changed.
type bench struct {
	dir   string
	whole tree
	order []stage
	sound map[string]bool // suites that pass without a fault
}

// sabotage tries faults one after the other and tells its progress.
func sabotage(ctx context.Context, whole tree, faults []fault, order []stage, progress io.Writer) (results []result, err error) {
	dir, err := os.MkdirTemp("", "sabotage-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o755); err != nil {
		return nil, err
	}
	b := &bench{dir: dir, whole: whole, sound: map[string]bool{}}
	b.order = slices.DeleteFunc(slices.Clone(order), func(s stage) bool { return !whole.holds(s.pkg) })
	for i := range faults {
		fmt.Fprintf(progress, "[%2d/%d] %-28s ", i+1, len(faults), faults[i].name)
		start := time.Now()
		r := b.try(ctx, &faults[i])
		if ctx.Err() != nil {
			fmt.Fprintln(progress, "interrupted")
			return nil, ctx.Err()
		}
		r.duration = time.Since(start)
		r.Seconds = float64(r.duration.Milliseconds()) / 1000
		fmt.Fprintf(progress, "%s, %.1f s\n", &r, r.Seconds)
		results = append(results, r)
	}
	return results, nil
}

// try applies one fault and asks tests, the likely ones first, until one fails.
func (b *bench) try(ctx context.Context, f *fault) result {
	r := result{Fault: f.name, Breaks: f.breaks, Does: f.does, File: f.file}
	broken, err := f.apply(b.whole)
	for _, s := range b.suites(f) {
		if err != nil {
			break
		}
		var v verdict
		if v, err = b.ask(ctx, broken, s); v.failed {
			r.Caught, r.Hang, r.By = true, v.hang, s.pkg+" "+v.test
			break
		}
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// suites is whom to ask about a fault, in order.
func (b *bench) suites(f *fault) []suite {
	list := slices.Clone(f.first)
	for _, stage := range b.order {
		asked := func(s suite) bool { return s.String() == stage.pkg }
		if !slices.ContainsFunc(list, asked) {
			list = append(list, in(stage.pkg))
		}
	}
	return list
}

// ask runs tests on a tree. That a test fails says something only if it
// passes on the whole tree, which is tried once.
func (b *bench) ask(ctx context.Context, t tree, s suite) (verdict, error) {
	if err := b.prove(ctx, s); err != nil {
		return verdict{}, err
	}
	if err := t.write(b.tree()); err != nil {
		return verdict{}, err
	}
	return b.run(ctx, s)
}

// prove makes sure that a suite passes on the whole tree.
func (b *bench) prove(ctx context.Context, s suite) error {
	if !b.stage(s.pkg).slow {
		s.tests = nil
	}
	if b.sound[s.pkg] || b.sound[s.String()] {
		return nil
	}
	if err := b.whole.write(b.tree()); err != nil {
		return err
	}
	v, err := b.run(ctx, s)
	if err == nil && v.failed {
		err = fmt.Errorf("%s of %s fails without any fault", v.test, s.pkg)
	}
	b.sound[s.String()] = err == nil
	return err
}

func (b *bench) stage(pkg string) stage {
	for _, s := range b.order {
		if s.pkg == pkg {
			return s
		}
	}
	return stage{pkg: pkg, timeout: hangs}
}

func (b *bench) tree() string { return filepath.Join(b.dir, "t") }
