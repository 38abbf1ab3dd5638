// Command sabotage shows that the tests would notice. It breaks the product
// one line at a time, in a copy of the tree, and says which test caught it:
//
//	make sabotage               every fault of the table (faults_*.go)
//	make sabotage FAULT=name    one
//	make sabotage ARGS=--json   for machines; ARGS=--list shows the table
//
// The exit code is 0 exactly if every fault was caught. It is not 0 if a fault
// can no longer be applied or does not compile: then it is the table that is
// wrong, and nothing is known about the tests.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	only := flag.String("fault", "", "apply only the fault of this `name`")
	list := flag.Bool("list", false, "print the table of faults and apply none")
	asJSON := flag.Bool("json", false, "print the results as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *list, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "sabotage:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, list, asJSON bool) error {
	faults := table()
	if only != "" {
		faults = slices.DeleteFunc(faults, func(f fault) bool { return f.name != only })
		if len(faults) == 0 {
			return fmt.Errorf("there is no fault %q; ARGS=--list shows all", only)
		}
	}
	if list {
		printFaults(os.Stdout, faults)
		return nil
	}
	whole, err := snapshot(".")
	if err != nil {
		return err
	}
	results, err := sabotage(ctx, whole, faults, order, os.Stderr)
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(os.Stdout, results)
	} else {
		printResults(os.Stdout, results)
	}
	if err == nil {
		err = judge(results)
	}
	return err
}

// result is what became of one fault.
type result struct {
	Fault    string  `json:"fault"`
	Breaks   string  `json:"breaks"` // the invariant, or the section of the specification
	Does     string  `json:"does"`
	File     string  `json:"file"`
	Caught   bool    `json:"caught"`
	By       string  `json:"by,omitempty"`   // package and test
	Hang     bool    `json:"hang,omitempty"` // the test did not end in its time
	Seconds  float64 `json:"seconds"`
	Error    string  `json:"error,omitempty"` // the fault could not be tried
	duration time.Duration
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
	case r.Hang:
		return by + " (hang)"
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
	var all time.Duration
	caught := 0
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FAULT\tBREAKS\tCAUGHT BY\tSECONDS")
	for i := range results {
		r := &results[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%.1f\n", r.Fault, r.Breaks, r, r.Seconds)
		all += r.duration
		if r.Caught {
			caught++
		}
	}
	_ = w.Flush()
	fmt.Fprintf(out, "\n%d faults, %d caught, %.0f seconds\n", len(results), caught, all.Seconds())
}

func printJSON(out io.Writer, results []result) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(results)
}

func printFaults(out io.Writer, faults []fault) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FAULT\tBREAKS\tFILE\tWHAT IT DOES")
	for _, f := range faults {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.name, f.breaks, f.file, f.does)
	}
	_ = w.Flush()
}
