package gauge

import (
	"strings"
	"sync"
)

// tailKept is how many bytes a Tail keeps.
const tailKept = 2 << 10

// Tail keeps the end of what is written to it, such as the last words of a server.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailKept; extra > 0 {
		t.text = t.text[extra:]
	}
	return len(p), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
