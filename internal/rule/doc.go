// Package rule decides what may happen to a job next, when, and under which
// keys it is found. Everything here is a pure function of its arguments: no
// clock, no dice, no input or output (DESIGN section 2).
//
//   - table.go   which verb may lead from which state to which
//   - step.go    one verb applied to one job: Step
//   - settle.go  how an attempt ends by its holder, lapse.go how without
//   - late.go    which settles count after their lease ended (core.md section 4)
//   - failure.go the order of decisions at a failure (core.md section 6)
//   - fate.go    dead or retry, for every end
//   - gate.go    groups: order, concurrency, hold, park (core.md section 2)
//   - line.go    index entries, line order, Fit and Pick (core.md 1 and 3)
//   - delay.go   the curves (retry.md section 1)
//   - waits.go   what the curves can draw, before they do
//   - overrun.go when it is seen that a run took too long
//   - depend.go  tasks that depend on others
//   - answer.go  what an engine is answered about a result; internal/model/account says it a
//     second time as a table, for the docs and tests, and so what becomes of tasks
package rule
