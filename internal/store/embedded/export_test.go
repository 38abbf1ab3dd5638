package embedded

// SyncNow and Watch are what the timers do.
func (s *Store) SyncNow() { s.syncNow() }

func (s *Store) Watch() { s.watch() }
