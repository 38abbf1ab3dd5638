package embedded

// SyncNow and Watch are what the timers do.
func (s *Store) SyncNow() { s.syncNow() }

func (s *Store) Watch() { s.watch() }

// ClaimJobs notes a number of jobs as a close does.
func (s *Store) ClaimJobs(n int64) { s.witness.closed(n) }
