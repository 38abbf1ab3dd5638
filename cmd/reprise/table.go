package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// table lays rows out in columns. Cells are made printable. On a terminal the widest
// columns of a list, which is a table with heads, are cut so that a row fits into a line.
type table struct {
	w     io.Writer
	right bool // numbers, which are easier to compare from the right

	most int // characters of a line; 0 = as many as are needed
	cols int // of a list; further cells of a row are left out; 0 = there may be any number
	rows [][]string
}

const (
	cellGap   = 2
	cellLeast = 12 // columns are not cut below this
)

func newTable(w io.Writer, heads ...string) *table {
	t := &table{w: w}
	if len(heads) > 0 {
		t.heads(heads...)
	}
	return t
}

// heads begins a list.
func (t *table) heads(heads ...string) {
	t.most, t.cols = columns(t.w), len(heads)
	t.row(heads...)
}

func (t *table) row(cells ...string) {
	if t.cols > 0 {
		cells = cells[:min(len(cells), t.cols)]
	}
	for i, cell := range cells {
		cells[i] = printable(cell)
	}
	t.rows = append(t.rows, cells)
}

// tell adds a row of a name and a value, none if there is no value.
func (t *table) tell(name, value string) {
	if value != "" {
		t.row(name, value)
	}
}

// flush writes the rows.
func (t *table) flush() error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			last := i == len(row)-1
			if !last || t.most > 0 {
				cell = clip(cell, widths[i])
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.right {
				cell, pad = pad+cell, ""
			}
			b.WriteString(cell)
			if !last {
				b.WriteString(pad + strings.Repeat(" ", cellGap))
			}
		}
		b.WriteByte('\n')
	}
	t.rows = nil
	_, err := io.WriteString(t.w, b.String())
	return err
}

// widths is how wide each column is: as its widest cell, less what is cut of the widest
// columns to fit into the line.
func (t *table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := cellGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; t.most > 0 && total > t.most; total-- {
		widest := len(widths) - 1
		for i, w := range widths {
			if i > 0 && w > widths[widest] { // the first one says which it is
				widest = i
			}
		}
		if widths[widest] <= cellLeast {
			break
		}
		widths[widest]--
	}
	return widths
}

// columns is how many characters a line of a terminal has; 0 for what is none.
func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 { //nolint:gosec // a descriptor
		return width
	}
	return 80
}
