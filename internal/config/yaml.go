package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/notation"
	"github.com/reprisehq/reprise/internal/spell"
)

// Bounds of a configuration file. The reader of YAML needs memory and time
// that grow with the square of the depth.
const (
	fileBytesMax = 1 << 20
	depthMax     = 64
)

// node is a value in a configuration file and the line it stands on. Scalars
// stay text: the kind of the setting says what they mean, so that 7890 in a
// file, in a flag and in the environment is the same.
type node struct {
	line    int
	kind    nodeKind
	text    string   // of a scalar
	plain   bool     // written without quotes
	secrets []string // the parts of text that came from references such as ${env:NAME}
	entries []entry
	items   []*node
}

type nodeKind uint8

const (
	badNode  nodeKind = iota // there is a problem about it already
	nullNode                 // key: without a value
	scalarNode
	mapNode
	listNode
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "nothing", "a single value", "keys", "a list"}[k]
}

type entry struct {
	key   string
	line  int
	value *node
}

// document is a configuration file being read.
type document struct {
	name     string // for messages
	root     *node
	problems Problems
	expand   func(string) (string, []string, error)
}

// parseYAML reads a file. What is wrong with it is in problems; the rest of
// it is still there, so that its problems are told too.
func parseYAML(name string, b []byte, expand func(string) (string, []string, error)) *document {
	d := &document{name: name, root: &node{kind: mapNode, line: 1}, expand: expand}
	if err := tooMuch(b); err != nil {
		d.problem(0, "", "%s", err)
		return d
	}
	file, err := parse(b)
	if err != nil {
		d.problem(lineOf(err), "", "is not YAML: %s", messageOf(err))
		return d
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch {
	case len(bodies) > 1:
		d.problem(bodies[1].GetToken().Position.Line, "", "only one document is read; remove the line ---")
	case len(bodies) == 1:
		if root := d.convert(bodies[0], ""); root.kind == mapNode {
			d.root = root
		} else if root.kind > nullNode {
			d.problem(root.line, "", "must be keys with values, not %s", root.kind)
		}
	}
	return d
}

// tooMuch refuses what would take the reader too long.
func tooMuch(b []byte) error {
	if len(b) > fileBytesMax {
		return fmt.Errorf("is larger than %s", notation.ShowSize(fileBytesMax))
	}
	depth := 0
	for _, c := range b {
		switch c {
		case '[', '{':
			if depth++; depth > depthMax {
				return fmt.Errorf("has more than %d open brackets", depthMax)
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return nil
}

// parse is the library's parser; where it meets text that it has no answer
// for it panics, which must not look like a defect of the server.
func parse(b []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the reader gave up: %v", r)
		}
	}()
	return parser.ParseBytes(b, 0, parser.AllowDuplicateMapKey())
}

// syntaxError is what the parser's errors have.
type syntaxError interface {
	error
	GetMessage() string
	GetToken() *token.Token
}

func messageOf(err error) string {
	if e, ok := errors.AsType[syntaxError](err); ok {
		return e.GetMessage()
	}
	return err.Error()
}

func lineOf(err error) int {
	if e, ok := errors.AsType[syntaxError](err); ok && e.GetToken() != nil {
		return e.GetToken().Position.Line
	}
	return 0
}

// at writes a place in the file: reprise.yaml:3.
func (d *document) at(line int) string {
	if line == 0 {
		return d.name
	}
	return fmt.Sprintf("%s:%d", d.name, line)
}

func (d *document) problem(line int, path, format string, args ...any) {
	where := d.at(line)
	if path = strings.TrimSuffix(path, "."); path != "" {
		where += ": " + path
	}
	p := Problem{where, fmt.Sprintf(format, args...), line}
	if !slices.Contains(d.problems, p) {
		d.problems = append(d.problems, p)
	}
}

// inOrder returns the problems as they stand in the file.
func (d *document) inOrder() Problems {
	slices.SortStableFunc(d.problems, func(a, b Problem) int { return a.line - b.line })
	return d.problems
}

// convert turns the parser's tree into ours.
func (d *document) convert(n ast.Node, path string) *node {
	if n == nil || n.GetToken() == nil {
		return &node{kind: nullNode}
	}
	out := &node{line: n.GetToken().Position.Line}
	switch n := n.(type) {
	case *ast.NullNode:
		out.kind = nullNode
	case *ast.MappingNode:
		out.kind = mapNode
		d.convertEntries(out, n.Values, path)
	case *ast.MappingValueNode:
		out.kind = mapNode
		d.convertEntries(out, []*ast.MappingValueNode{n}, path)
	case *ast.SequenceNode:
		out.kind = listNode
		for i, item := range n.Values {
			out.items = append(out.items, d.convert(item, fmt.Sprintf("%s[%d]", path, i)))
		}
	case *ast.StringNode:
		plain := n.Token.Type != token.SingleQuoteType && n.Token.Type != token.DoubleQuoteType
		d.scalar(out, path, n.Value, plain)
	case *ast.LiteralNode:
		d.scalar(out, path, n.Value.Value, false)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		d.scalar(out, path, strings.TrimSpace(n.GetToken().Value), true)
	default:
		d.problem(out.line, path, "YAML's %s is not read here; write the value out", strings.ToLower(n.Type().String()))
	}
	return out
}

func (d *document) convertEntries(out *node, values []*ast.MappingValueNode, path string) {
	seen := map[string]int{}
	for _, v := range values {
		tk := v.Key.GetToken()
		key := tk.Value
		switch k := v.Key.(type) {
		case *ast.StringNode:
			key = k.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		default:
			d.problem(tk.Position.Line, path, "the key must be a name; YAML's %s is not read here", strings.ToLower(v.Key.Type().String()))
			continue
		}
		at := join(path, key)
		value := d.convert(v.Value, at)
		value.line = tk.Position.Line
		if first, twice := seen[key]; twice {
			d.problem(tk.Position.Line, at, "is there twice, first on line %d", first)
			continue
		}
		if key == "" {
			d.problem(tk.Position.Line, path, "a key is empty")
			continue
		}
		seen[key] = tk.Position.Line
		out.entries = append(out.entries, entry{key, tk.Position.Line, value})
	}
}

func (d *document) scalar(out *node, path, text string, plain bool) {
	expanded, secrets, err := d.expand(text)
	if err != nil {
		d.problem(out.line, path, "%s", err)
		return
	}
	out.kind, out.text, out.plain, out.secrets = scalarNode, expanded, plain, secrets
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// leaves finds the nodes at the known paths and reports every key that leads
// to none of them. base is the path of n in the file.
func (d *document) leaves(n *node, base string, known []string) map[string]*node {
	found := map[string]*node{}
	var walk func(n *node, prefix string)
	walk = func(n *node, prefix string) {
		if n.kind <= nullNode { // a heading whose lines are all commented out
			return
		}
		if n.kind != mapNode {
			d.problem(n.line, join(base, prefix), "must have keys, not %s", n.kind)
			return
		}
		for _, e := range n.entries {
			path := join(prefix, e.key)
			switch {
			case strings.Contains(e.key, "."):
				d.problem(e.line, path, "unknown key; write each part of it on a line of its own, the second below the first and further to the right")
			case slices.Contains(known, path):
				found[path] = e.value
			case slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, path+".") }):
				walk(e.value, path)
			default:
				d.problem(e.line, join(base, path), "unknown key%s", d.hint(base, path, known))
			}
		}
	}
	walk(n, "")
	return found
}

// hint names the known path that was probably meant, or those there are.
func (d *document) hint(base, path string, known []string) string {
	if text := elsewhere(path); text != "" && base == "" {
		return "; it" + text
	}
	at := strings.LastIndexByte(path, '.') + 1
	heading, leaf := path[:at], path[at:]
	var here, leaves []string
	for _, k := range known {
		leaves = append(leaves, k[strings.LastIndexByte(k, '.')+1:])
		if rest, below := strings.CutPrefix(k, heading); below {
			if key, _, _ := strings.Cut(rest, "."); !slices.Contains(here, key) {
				here = append(here, key)
			}
		}
	}
	same := func(s string) bool { return spell.Fold(s) == spell.Fold(leaf) }
	i, meant := slices.IndexFunc(leaves, same), ""
	switch near := spell.Meant(leaf, here); {
	case slices.ContainsFunc(here, same):
		meant = heading + near
	case i >= 0: // right name, wrong place
		meant = known[i]
	case near != "":
		meant = heading + near
	default:
		if i := slices.Index(leaves, spell.Meant(leaf, leaves)); i >= 0 {
			meant = known[i]
		}
	}
	if meant != "" {
		return "; did you mean " + meant + "?"
	}
	return "; known here: " + strings.Join(here, ", ")
}

// elsewhere says where a setting of an original stands that somebody wrote at the
// top of the file, or in a section of it.
func elsewhere(path string) string {
	leaf := path[strings.LastIndexByte(path, '.')+1:]
	if o, ok := spell.Find("Zizq", leaf); ok {
		return o.Answer("")
	}
	if o, ok := spell.Find("GridServer", leaf); ok {
		if o.Here == "" || strings.HasPrefix(o.Here, gridPath+".") {
			return o.Answer("")
		}
		return o.Answer("") + ", below grid.defaults"
	}
	if o, ok := spell.Find("correlate", path); ok {
		return o.Answer("")
	}
	if place := inbox.Place(path); place != "" {
		return " is a setting of an inbox; write it below inboxes.NAME: " + place
	}
	return ""
}

// json writes a node as JSON: what was written without quotes and is a number
// or a bool in JSON stays one, everything else is a string.
func (n *node) json() []byte {
	switch n.kind {
	case scalarNode:
		literal := n.plain && (n.text == "true" || n.text == "false" || isJSONNumber(n.text))
		if literal {
			return []byte(n.text)
		}
		return jsonString(n.text)
	case listNode:
		parts := make([][]byte, len(n.items))
		for i, item := range n.items {
			parts[i] = item.json()
		}
		return fmt.Appendf(nil, "[%s]", bytes.Join(parts, []byte(",")))
	case mapNode:
		parts := make([][]byte, len(n.entries))
		for i, e := range n.entries {
			parts[i] = fmt.Appendf(nil, "%s:%s", jsonString(e.key), e.value.json())
		}
		return fmt.Appendf(nil, "{%s}", bytes.Join(parts, []byte(",")))
	case badNode, nullNode:
	}
	return []byte("null")
}

func isJSONNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

func jsonString(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a string always has a form in JSON
		panic(err)
	}
	return b
}

// find returns the deepest node on a path such as rules[2].curve.delays[0] or
// weights["a.b"].
func (n *node) find(path string) *node {
	for path != "" {
		name, rest := step(path)
		at, err := strconv.Atoi(name)
		if n.kind != listNode || err != nil || at >= len(n.items) {
			at = slices.IndexFunc(n.entries, func(e entry) bool { return e.key == name })
		}
		if at < 0 {
			at = slices.IndexFunc(n.entries, func(e entry) bool { return spell.Fold(e.key) == spell.Fold(name) })
		}
		switch {
		case at < 0:
			return n
		case n.kind == listNode:
			n = n.items[at]
		default:
			n = n.entries[at].value
		}
		path = rest
	}
	return n
}

// step takes the first name off a path.
func step(path string) (name, rest string) {
	in, indexed := strings.CutPrefix(path, "[")
	switch quoted, err := strconv.QuotedPrefix(in); {
	case indexed && err == nil:
		name, _ = strconv.Unquote(quoted)
		rest = strings.TrimPrefix(in[len(quoted):], "]")
	case indexed:
		name, rest, _ = strings.Cut(in, "]")
	default:
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		name, rest = path[:end], path[end:]
	}
	return name, strings.TrimPrefix(rest, ".")
}

// any reports whether the node, or one below it, is so.
func (n *node) any(is func(*node) bool) bool {
	return is(n) ||
		slices.ContainsFunc(n.items, func(item *node) bool { return item.any(is) }) ||
		slices.ContainsFunc(n.entries, func(e entry) bool { return e.value.any(is) })
}

func (n *node) isBad() bool    { return n.kind == badNode }
func (n *node) isSecret() bool { return len(n.secrets) > 0 }
