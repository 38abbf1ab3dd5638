package embedded

import "github.com/reprisehq/reprise/internal/job"

// SyncNow and Watch are what the timers do.
func (s *Store) SyncNow() { s.syncNow() }

func (s *Store) Watch() { s.watch() }

// ClaimJobs notes a number of jobs as a close does.
func (s *Store) ClaimJobs(n int64) { s.witness.closed(n) }

// GiveBack forgets names that nothing has, as Update does now and then.
func (s *Store) GiveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.giveBack(s.rows.tables[job.Queues])
}
