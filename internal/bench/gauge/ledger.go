package gauge

// Ledger is a growing set of numbers: one bit per job, to notice a delivery
// that should not have been.
type Ledger struct {
	words []uint64
	count int64
}

// Mark adds n and reports whether it was new.
func (l *Ledger) Mark(n int64) bool {
	word, bit := int(n/64), uint64(1)<<(n%64)
	if word >= len(l.words) {
		l.words = append(l.words, make([]uint64, max(word+1-len(l.words), len(l.words), 1<<10))...)
	}
	if l.words[word]&bit != 0 {
		return false
	}
	l.words[word] |= bit
	l.count++
	return true
}

// Count is how many numbers it holds.
func (l *Ledger) Count() int64 { return l.count }
