// Package plan is what the grid computes without a store, a clock or dice: which share of
// the slots a session has (Rota), when a copy of a slow run is worth its cost (Threshold,
// Spend), whose run ends for an urgent task (Victims), which engines a session excludes
// (Exclude) and which are probed before they get more (HealthRoom), when a session ends
// (SessionDue). What becomes of a task is internal/rule's, as of any job.
package plan
