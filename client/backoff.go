package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff counts waits that double from first to most. Half of each is left
// to chance, so that clients which lost the same server return one by one.
type backoff struct {
	first, most time.Duration
	next        time.Duration
}

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) wait() time.Duration {
	b.next = min(max(2*b.next, b.first), b.most)
	return b.next/2 + rand.N(b.next/2+1)
}

// pause waits, or returns early and false when ctx or skip ends it.
func pause(ctx context.Context, d time.Duration, skip <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-skip:
		return false
	case <-ctx.Done():
		return false
	}
}
