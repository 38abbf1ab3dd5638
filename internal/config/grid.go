package config

import (
	"strings"

	"github.com/reprisehq/reprise/internal/door/grid"
)

// gridPath is the part of the file about sessions and engines.
const gridPath = "grid"

// grid reads what the broker decides, with the reader of its door, so that
// each problem has its line.
func (l *loader) grid() {
	n := l.leaves[gridPath]
	if n == nil || n.kind <= nullNode || n.any((*node).isBad) {
		return
	}
	c, err := grid.ReadConfig(n.json())
	if err == nil {
		err = c.Check()
	}
	if l.file.all(l.file.root, "", err) { // its fields begin with grid
		l.cfg.Grid = c
		l.gridValues(n, gridPath)
	}
}

// gridValues tells of every value below n.
func (l *loader) gridValues(n *node, path string) {
	switch n.kind {
	case mapNode:
		for _, e := range n.entries {
			l.gridValues(e.value, join(path, e.key))
		}
	case listNode, scalarNode:
		l.fileValue(path, strings.Trim(string(n.json()), `"`), n)
	case badNode, nullNode:
	}
}
