package job

// Cursor is how far an input has read a source of its own, such as a file. It is written
// in the transaction that takes in what was read, so that a start goes on behind that.
type Cursor struct {
	Input  string // the input that reads
	Source string // what it reads, as the input names it
	Body   []byte // where it is, in the words of the input
}

// CursorKey is the key of a row of Cursors: those of an input stand together.
func CursorKey(input, source string) string { return input + "\x00" + source }

// Table implements Row.
func (c *Cursor) Table() Table { return Cursors }

// Key implements Row.
func (c *Cursor) Key() string { return CursorKey(c.Input, c.Source) }

// Due implements Row.
func (c *Cursor) Due() Millis { return 0 }
