package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprisehq/reprise/internal/config"
	policies "github.com/reprisehq/reprise/internal/policy"
	"github.com/reprisehq/reprise/internal/policy/picture"
)

func newPolicyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "policy",
		Short: "See what a retry policy does before you use it",
		Long: `See what a retry policy does before you use it.

A policy says how long to wait before each retry, and when to give up. preview
shows its waits, decide what it makes of one failure, simulate what it does to a
target that is down for a while. None of them asks a server for anything.
docs/retries.md teaches the policies.`,
		Example: `  reprise policy preview
  reprise policy decide --policy reprise-retry.yaml --status 503
  reprise policy simulate`,
	}, newPreviewCommand(), newDecideCommand(), newSimulateCommand())
}

// aboutPolicies ends the help of each command.
const aboutPolicies = `
The policy comes from flags, or from a file: the retry: part of a configuration
file, as YAML or JSON, with or without the key retry. What is not given is the
default: limit 25, and the polynomial curve of 15s, 4, 30s. A time is written
1m30s, 7d, PT6S, or as a number of milliseconds.`

// policyFlags are the flags of a policy: its parts by name, or a file.
type policyFlags struct {
	values map[string][]string
	file   string
}

// part is one part of a policy as a flag; it only notes what is given.
type part struct {
	flags *policyFlags
	about policies.Param
}

func (p part) String() string { return "" }
func (p part) Type() string   { return p.about.Value }
func (p part) Set(s string) error {
	p.flags.values[p.about.Name] = append(p.flags.values[p.about.Name], s)
	return nil
}

func (f *policyFlags) register(cmd *cobra.Command) {
	f.values = map[string][]string{}
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, p := range policies.Params {
		flags.Var(part{f, p}, p.Name, p.Help)
	}
	flags.StringVar(&f.file, "policy", "", "read the policy from this `FILE`, - for standard input")
	completeFlag(cmd, "curve", words(policies.Kinds()))
}

var _ pflag.Value = part{}

// read returns the policy and the number of rows that a preview is asked for,
// 0 if it is not.
func (f *policyFlags) read(cmd *cobra.Command) (r policies.Retry, rows int, err error) {
	if f.file == "" {
		if r, rows, err = policies.Read(f.values, "--"); err != nil {
			return r, 0, &usageError{inLines(err)}
		}
		return r, rows, nil
	}
	for _, p := range policies.Params {
		if f.values[p.Name] != nil {
			return r, 0, usagef("--policy and --%s exclude each other: the file says it all", p.Name)
		}
	}
	if _, rows, err = policies.Read(f.values, "--"); err != nil { // --rows alone is left
		return r, 0, &usageError{inLines(err)}
	}
	text, name, err := readFile(f.file, cmd.InOrStdin())
	if err != nil {
		return r, 0, err
	}
	r, err = config.ReadPolicy(filepath.Base(name), text)
	return r, rows, inLines(err)
}

// inLines writes each of several problems on a line of its own.
func inLines(err error) error {
	many, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err)
	if !ok || len(many.Unwrap()) < 2 {
		return err
	}
	text := fmt.Sprintf("the policy has %d problems:", len(many.Unwrap()))
	for _, each := range many.Unwrap() {
		text += "\n  " + each.Error()
	}
	return errors.New(text)
}

// paper is how a command prints what it worked out without a server: as a table, as JSON,
// or as a picture.
type paper struct {
	asJSON bool
	svg    string // the file of the picture
}

func (p *paper) register(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&p.asJSON, "json", false, "print JSON, times in milliseconds")
	cmd.Flags().StringVar(&p.svg, "svg", "", "draw "+what+" into this `FILE` as SVG; - prints it instead of the table")
}

func (p *paper) print(cmd *cobra.Command, v any, draw, text func(io.Writer) error) error {
	out := cmd.OutOrStdout()
	switch p.svg {
	case "":
	case "-":
		return draw(out)
	default:
		f, err := os.Create(p.svg)
		if err == nil {
			err = errors.Join(draw(f), f.Close())
		}
		if err != nil {
			return err
		}
	}
	if p.asJSON {
		return jsonLine(out, v)
	}
	return text(out)
}

func newPreviewCommand() *cobra.Command {
	var f policyFlags
	var shown paper
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Show when a policy would retry: earliest, mean and latest",
		Long: `Show when a policy would retry: for each retry the earliest, mean and latest
wait, and how long all of them up to there take. A wait is drawn between
earliest and latest when an attempt fails; runs are taken to need no time.
` + aboutPolicies,
		Example: `  # the default: 25 retries in about three weeks
  reprise policy preview

  # and its picture
  reprise policy preview --svg policy.svg

  # doubling from one minute to three hours, spread by a tenth
  reprise policy preview --curve exponential --unit 1m --cap 180m --jitter ±10% --limit 12

  # fixed steps, as webhook senders do
  reprise policy preview --curve list --delays 5s,5m,30m,2h,5h,10h --limit 8

  # how far an hour goes
  reprise policy preview --curve uniform --limit unlimited --max-age 1h

  # a policy from a file, and from another program
  reprise policy preview --policy reprise-retry.yaml
  echo '{"limit": 3, "curve": {"kind": "constant", "delay": "5s"}}' | reprise policy preview --policy - --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, rows, err := f.read(cmd)
			if err != nil {
				return err
			}
			p := policies.Of(r, rows)
			return shown.print(cmd, p, func(w io.Writer) error { return picture.Preview(w, p) }, func(w io.Writer) error { return printPreview(w, p) })
		},
	}
	f.register(cmd)
	cmd.Flags().Var(part{&f, policies.Rows}, policies.Rows.Name, policies.Rows.Help)
	shown.register(cmd, "the band between earliest and latest")
	return cmd
}

func printPreview(w io.Writer, p policies.Preview) error {
	fmt.Fprintf(w, "%s\n\n", policies.Line(p.Retry))
	if len(p.Rows) > 0 {
		t := newTable(w, "RETRY", "EARLIEST", "MEAN", "LATEST", "SUM EARLIEST", "SUM LATEST")
		t.right = true
		for _, row := range p.Rows {
			t.row(strconv.Itoa(row.Retry), row.Min.String(), row.Mean.String(), row.Max.String(), row.TotalMin.String(), row.TotalMax.String())
		}
		if err := t.flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintln(w, p.Ending())
	return err
}
