package embedded

// SyncNow is what the timer does.
func (s *Store) SyncNow() { s.syncNow() }
