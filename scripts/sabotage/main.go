// Command sabotage shows that the tests would notice. It changes the product in
// a copy of the tree, and says which test caught it:
//
//	make sabotage                     every fault of faults/*.txt
//	make mutate PKG=internal/rule     every small change of a package
//
// docs/testing-sabotage.md says how. The exit code is 0 exactly if everything
// was caught. It is not 0 if a fault can no longer be applied or does not
// compile: then it is the table that is wrong, and nothing is known about the
// tests.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	var o options
	flag.StringVar(&o.fault, "fault", "", "apply only the fault of this `name`")
	flag.BoolVar(&o.list, "list", false, "print the table of faults and apply none")
	flag.BoolVar(&o.near, "near", false, "ask only the packages that a fault names")
	flag.StringVar(&o.mutate, "mutate", "", "try every mutant of this `package` instead of the table")
	flag.StringVar(&o.by, "by", "", "ask the tests of these `packages`, not those of the mutated one")
	flag.StringVar(&o.keep, "keep", "", "add each result to this `file` as soon as it is known; what stands there is not tried again")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "sabotage:", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	fault, mutate, by, keep string
	list, near              bool
}

func run(ctx context.Context, o options) error {
	whole, err := snapshot(".")
	if err != nil {
		return err
	}
	if o.mutate != "" {
		equal, err := readEquals(whole["scripts/sabotage/equal.txt"])
		if err != nil {
			return err
		}
		keep, done, err := kept[*mutant](o.keep)
		if err != nil {
			return err
		}
		by := strings.FieldsFunc(cmp.Or(o.by, o.mutate), func(r rune) bool { return r == ',' })
		list, err := mutateAll(ctx, whole, o.mutate, by, equal, done, keep, os.Stderr)
		if err != nil {
			return err
		}
		return tell(os.Stdout, o.mutate, list, equal)
	}
	faults, err := table(whole)
	if err != nil {
		return err
	}
	faults = slices.DeleteFunc(faults, func(f fault) bool { return o.fault != "" && f.name != o.fault })
	switch {
	case len(faults) == 0:
		return fmt.Errorf("there is no fault %q; ARGS=-list shows all", o.fault)
	case o.list:
		printFaults(os.Stdout, faults)
		return nil
	}
	keep, results, err := kept[result](o.keep)
	if err != nil {
		return err
	}
	faults = slices.DeleteFunc(faults, func(f fault) bool {
		return slices.ContainsFunc(results, func(r result) bool { return r.Fault == f.name })
	})
	err = sabotage(ctx, whole, faults, o.near, func(r *result) error {
		results = append(results, *r)
		return keep(r)
	}, os.Stderr)
	printResults(os.Stdout, results)
	return errors.Join(err, judge(results))
}

// kept opens the file of results, and reads what it has.
func kept[T any](name string) (keep func(any) error, done []T, err error) {
	if name == "" {
		return func(any) error { return nil }, nil, nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	for d := json.NewDecoder(f); ; {
		var r T
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return json.NewEncoder(f).Encode, done, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		done = append(done, r)
	}
}

// result is what became of one fault.
type result struct {
	Fault   string  `json:"fault"`
	Breaks  string  `json:"breaks"` // the invariant, or the section of the specification
	Does    string  `json:"does"`
	File    string  `json:"file"`
	Caught  bool    `json:"caught"`
	By      string  `json:"by,omitempty"` // package and test
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"` // the fault could not be tried
}

// String is what the table says; a long name of a subtest is cut.
func (r *result) String() string {
	const long = 80
	by := r.By
	if len(by) > long {
		by = strings.ToValidUTF8(by[:long], "") + "..."
	}
	switch {
	case r.Error != "":
		return "ERROR: " + r.Error
	case !r.Caught:
		return "NOT CAUGHT"
	}
	return by
}

// judge is nil exactly if every fault was caught.
func judge(results []result) error {
	caught, wrong := 0, 0
	for i := range results {
		switch {
		case results[i].Error != "":
			wrong++
		case results[i].Caught:
			caught++
		}
	}
	if missed := len(results) - caught - wrong; missed+wrong > 0 {
		return fmt.Errorf("%d of %d faults were not caught, %d could not be tried", missed, len(results), wrong)
	}
	return nil
}

func printResults(out io.Writer, results []result) {
	var all float64
	caught := 0
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FAULT\tBREAKS\tCAUGHT BY\tSECONDS")
	for i := range results {
		r := &results[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f\n", r.Fault, r.Breaks, r, r.Seconds)
		all += r.Seconds
		if r.Caught {
			caught++
		}
	}
	_ = w.Flush()
	fmt.Fprintf(out, "\n%d faults, %d caught, %.0f seconds\n", len(results), caught, all)
}

func printFaults(out io.Writer, faults []fault) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FAULT\tBREAKS\tFILE\tWHAT IT DOES")
	for _, f := range faults {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.name, f.breaks, f.file, f.does)
	}
	_ = w.Flush()
}
