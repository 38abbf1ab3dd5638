package engine

import "sync"

// watchers are those who wait for news of names, such as that of a session.
type watchers struct {
	mu   sync.Mutex // guards what follows
	bell map[string]chan struct{}
}

// News is closed when a part rings for the name since the call (Tx.Ring). It is closed
// too when the server stops.
func (e *Engine) News(name string) <-chan struct{} {
	w := &e.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bell == nil {
		w.bell = map[string]chan struct{}{}
	}
	if w.bell[name] == nil {
		w.bell[name] = make(chan struct{})
	}
	return w.bell[name]
}

// ring tells who waits for news of the names.
func (w *watchers) ring(names []string) {
	if len(names) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if bell := w.bell[name]; bell != nil {
			close(bell)
			delete(w.bell, name)
		}
	}
}

// ringAll ends all waiting.
func (w *watchers) ringAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, bell := range w.bell {
		close(bell)
		delete(w.bell, name)
	}
}
