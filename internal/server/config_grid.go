package server

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
	if n == nil || n.kind == badNode || n.kind == nullNode || n.any((*node).isBad) {
		return
	}
	c, err := grid.ReadConfig(n.json())
	if err == nil {
		err = c.Check()
	}
	for _, one := range refusals(err) {
		l.gridProblem(n, one.Field, one.Text)
	}
	if err == nil {
		l.cfg.Grid = c
		l.gridValues(n, gridPath)
	}
}

func (l *loader) gridProblem(n *node, field, text string) {
	at := n.find(strings.TrimPrefix(field, gridPath+"."))
	if at.any((*node).isSecret) {
		text = hidden("see docs/grid.md").Error()
	}
	l.file.problem(at.line, field, "%s", strings.TrimPrefix(strings.TrimPrefix(text, field), " "))
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
