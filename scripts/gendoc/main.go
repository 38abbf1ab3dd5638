// Command gendoc writes docs/protocol/states.md from the transition table of package
// rule, so that what is documented is what runs.
//
//	go run ./scripts/gendoc          writes it
//	go run ./scripts/gendoc -check   fails if it is stale
//
// Both are run from the root of the repository.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/model/account"
	"github.com/reprisehq/reprise/internal/rule"
)

// path is the document, seen from the root of the repository.
const path = "docs/protocol/states.md"

var errStale = errors.New(path + " is not what the transition table says; run: go run ./scripts/gendoc")

func main() {
	check := flag.Bool("check", false, "compare only; exit 1 if the document is stale")
	flag.Parse()
	if err := run(path, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

// run writes the document, or compares it.
func run(file string, check bool) error {
	if !check {
		return os.WriteFile(file, []byte(document()), 0o644)
	}
	have, err := os.ReadFile(file)
	if err == nil && string(have) != document() {
		err = errStale
	}
	return err
}

const intro = `<!-- Written by scripts/gendoc from internal/rule/table.go. Do not edit. -->

# States of a job

A job is in exactly one of five states. Every change goes through one function, ` + "`rule.Step`" + `,
which knows the table below and nothing else: any other pair of state and verb is an error
by name, and changes nothing.

| State | ` + "`status`" + ` on the wire | Meaning |
| --- | --- | --- |
| scheduled | ` + "`scheduled`" + ` | waits for its due time: put for later, or waiting for a retry |
| ready | ` + "`ready`" + ` | waits for a holder |
| leased | ` + "`in_flight`" + ` | runs: at least one lease is live |
| done | ` + "`completed`" + ` | finished; kept for ` + "`retention.completed_ms`" + ` ([default](../jobs.md#how-long-a-finished-job-is-kept)); 0 is gone at once |
| dead | ` + "`dead`" + ` | given up; kept for ` + "`retention.dead_ms`" + `, by default 7 days. ` + "`reason`" + ` is one of %s (exhausted: at its limit or maximal age; lost: its workers vanished; evicted: pushed out of a full queue) |

Four counters are never mixed. ` + "`attempts`" + ` counts failures, and only they use up the retry limit. ` + "`losses`" + ` counts
how often in a row a worker vanished without a word, ` + "`evictions`" + ` how often the job was given back, ` + "`reschedules`" + ` how
often one more copy was asked for. The last three are left out of answers while they are 0.

`

const bridge = `
What the drawing leaves out: *patch*, which moves a job between scheduled and ready only, and the
way of a job without retention, which leaves where it would have entered done or dead.

## Transitions

None is "does not exist": before put, and after the job left.

`

const late = `
## Late and double results

What an engine of the grid is answered about a result, read from above: the first line that fits
decides. A run is lost when its engine was not heard of, or the server started anew; it overran when
it took too long and its engine was logged off. With ` + "`late_ok: never`" + ` a lost run has no result.

`

func document() string {
	var b strings.Builder
	fmt.Fprintf(&b, intro, reasons())
	drawing(&b)
	b.WriteString(bridge)
	b.WriteString(rule.Markdown())
	b.WriteString(late)
	b.WriteString(account.Markdown())
	return b.String()
}

func reasons() string {
	var names []string
	for r := job.Exhausted; r < job.Reasons; r++ {
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
}

// drawing writes the table as a mermaid diagram, one arrow per pair of states.
func drawing(b *strings.Builder) {
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for from := job.None; from < job.States; from++ {
		for to := job.None; to < job.States; to++ {
			if verbs := arrow(from, to); len(verbs) > 0 {
				fmt.Fprintf(b, "    %s --> %s: %s\n", node(from), node(to), strings.Join(verbs, ", "))
			}
		}
	}
	b.WriteString("```\n")
}

// arrow names the verbs drawn from one state to another.
func arrow(from, to job.State) (names []string) {
	for v := rule.Put; v < rule.Verbs; v++ {
		if drawn := v != rule.Patch && (to != job.None || v == rule.Purge); drawn && rule.Leads(v, from, to) {
			names = append(names, v.String())
		}
	}
	return names
}

func node(s job.State) string {
	if s == job.None {
		return "[*]"
	}
	return s.String()
}
