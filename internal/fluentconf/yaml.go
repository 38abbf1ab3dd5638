package fluentconf

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// yamlFile reads a file of YAML. All single values are text, as they are written.
type yamlFile struct {
	*loader
	file string
}

// field is a key of a map.
type field struct {
	key   string
	at    Place
	value ast.Node
}

func (l *loader) yaml(file string, text []byte) {
	y := &yamlFile{l, file}
	parsed, line, why := y.parse(text)
	if why != "" {
		y.Problem(Place{file, line}, "%s", why)
		return
	}
	var bodies []ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) > 1 {
		y.Problem(y.at(bodies[1]), "only one document is read; take the line --- out")
		return
	}
	for _, body := range bodies {
		for _, f := range y.fields(body, "the file") {
			y.top(f)
		}
	}
}

// tooMuch tells of a file that would take the library's parser too long: it needs time
// that grows with the square of the depth and of the keys. keys are those of all files.
func tooMuch(tokens token.Tokens, keys *int) (line int, why string) {
	var columns []int // of what is open
	brackets := 0
	own := 0
	for _, t := range tokens {
		first := t.Position.Line != line
		line = t.Position.Line
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.MappingValueType:
			own++
			*keys++
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			first = true
		default:
		}
		if column := t.Position.Column; first && brackets == 0 {
			for len(columns) > 0 && columns[len(columns)-1] >= column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, column)
		}
		switch {
		case len(columns)+brackets > yamlDepthMax:
			return line, fmt.Sprintf("is nested deeper than %d levels", yamlDepthMax)
		case own > yamlKeysMax:
			return line, fmt.Sprintf("a file may have %d keys; move some of it into another one and name that one by includes", yamlKeysMax)
		case *keys > yamlAllKeysMax:
			return line, fmt.Sprintf("all files together may have %d keys", yamlAllKeysMax)
		}
	}
	return 0, ""
}

// parse is the library's reader; it panics at some texts.
func (y *yamlFile) parse(text []byte) (file *ast.File, line int, why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprintf("the reader of YAML gave up: %v", r)
		}
	}()
	tokens := lexer.Tokenize(string(text))
	if line, why = tooMuch(tokens, &y.keys); why != "" {
		return nil, line, why
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, lineOf(err), "is no YAML: " + messageOf(err)
	}
	return file, 0, ""
}

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

// top reads a key at the top of the file.
func (y *yamlFile) top(f field) {
	switch kind := strings.ToLower(f.key); kind {
	case "env":
		y.env(f)
	case "includes":
		for _, n := range y.items(f) {
			if path, ok := y.scalar(n, f.key); ok {
				y.include(y.at(n), path)
			}
		}
	case Service:
		if y.service != (Place{}) {
			y.Problem(f.at, "service is there twice, first at %s; put them together", y.service)
		}
		y.service = f.at
		s := y.section(Service, f)
		for _, inner := range s.Inner {
			if inner.Kind != "telemetry" {
				y.Problem(inner.At, "service.%s must be one value, not keys below it; write %s.KEY: VALUE", inner.Kind, inner.Kind)
			}
		}
	case "pipeline":
		for _, part := range y.fields(f.value, "pipeline") {
			switch part.key {
			case "inputs", "filters", "outputs", "customs":
				y.list(strings.TrimSuffix(part.key, "s"), part)
			default:
				y.Problem(part.at, "pipeline.%s is unknown; pipeline has inputs, filters and outputs", quote(part.key))
			}
		}
	case "parsers", "multiline_parsers", "customs":
		y.list(strings.TrimSuffix(kind, "s"), f)
	default:
		y.other(kind, f)
	}
}

// other reads a section that has no form of its own: keys, a list of them, or values,
// which are entries with the name of the section.
func (y *yamlFile) other(kind string, f field) {
	var values *Section
	for _, n := range y.items(f) {
		if _, isMap := keysOf(n); isMap {
			y.section(kind, field{at: y.at(n), value: n})
			continue
		}
		if values == nil {
			values = y.open(kind, f.at)
		}
		y.entry(values, field{kind, y.at(n), n})
	}
}

// list reads a list of plugins or parsers.
func (y *yamlFile) list(kind string, f field) {
	if _, isMap := keysOf(f.value); isMap {
		y.Problem(f.at, "%s must be a list; write - before each of its parts", f.key)
		return
	}
	for _, n := range y.items(f) {
		s := y.section(kind, field{f.key, y.at(n), n})
		if len(s.Entries) == 0 && len(s.Inner) == 1 { // - dummy: {tag: a}, as it was once written
			inner := s.Inner[0]
			name := Entry{Key: "name", Written: inner.Kind, At: inner.At}
			s.Entries, s.Inner = append([]Entry{name}, inner.Entries...), inner.Inner
		}
	}
}

func (y *yamlFile) section(kind string, f field) *Section {
	s := y.open(kind, f.at)
	y.fill(s, f.value)
	return s
}

func (y *yamlFile) fill(s *Section, n ast.Node) {
	for _, f := range y.fields(n, s.Kind) {
		f.key = snake(f.key)
		y.entry(s, f)
	}
}

// entry adds a key to a section: a value as an entry, a list as several, keys as an
// inner section.
func (y *yamlFile) entry(s *Section, f field) {
	if list, isList := plain(f.value).(*ast.SequenceNode); isList {
		for _, n := range list.Values {
			if _, deeper := plain(n).(*ast.SequenceNode); deeper {
				y.Problem(y.at(n), "%s: a list in a list is not read", quote(f.key))
			} else {
				y.entry(s, field{f.key, y.at(n), n})
			}
		}
		return
	}
	if !y.item(f.at) {
		return
	}
	if _, isMap := keysOf(f.value); isMap {
		inner := &Section{Kind: f.key, At: f.at}
		s.Inner = append(s.Inner, inner)
		y.fill(inner, f.value)
	} else if text, ok := y.scalar(f.value, f.key); ok {
		s.add(f.at, f.key, text)
	}
}

// env reads variables: a map of them, or a list of {name, value} and {name, uri}.
func (y *yamlFile) env(f field) {
	if _, isMap := keysOf(f.value); isMap {
		for _, v := range y.fields(f.value, "env") {
			if text, ok := y.scalar(v.value, v.key); ok && y.item(v.at) {
				y.config.variables[v.key] = text
			}
		}
		return
	}
	for _, n := range y.items(f) {
		s := &Section{Kind: "env", At: y.at(n)}
		y.fill(s, n)
		name, _ := s.Find("name")
		value, hasValue := s.Find("value")
		uri, hasURI := s.Find("uri")
		switch {
		case name.Written == "" || hasValue == hasURI:
			y.Problem(s.At, "a variable needs a name, and a value or a uri such as file:///run/secrets/token")
		case hasURI:
			y.config.variables[name.Written] = y.secret(uri)
		default:
			y.config.variables[name.Written] = value.Written
		}
		if again, found := s.Find("refresh_interval"); found {
			y.Notice(again.At, "refresh_interval has no effect: the file is read when the configuration is, so reload after a change")
		}
	}
}

// secret reads the file that has the value of a variable.
func (y *yamlFile) secret(uri Entry) string {
	const most = 1 << 20
	path, isFile := strings.CutPrefix(uri.Written, "file://")
	if !isFile {
		y.Problem(uri.At, "%s must begin with file://", quote(uri.Written))
		return ""
	}
	text, _, err := y.from.Read(path, most)
	value := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		y.Problem(uri.At, "%s cannot be read: %s", quote(path), err)
	case value == "":
		y.Problem(uri.At, "%s is empty; write the value of the variable into it", quote(path))
	}
	return value
}

func (y *yamlFile) include(at Place, path string) {
	folder := filepath.Dir(y.file)
	if strings.Contains(path, "*") {
		y.glob(at, path, folder)
	} else {
		y.loader.file(at, filepath.Join(folder, path), path)
	}
}

// fields are the keys of a map. what it is is for the message if it is none.
func (y *yamlFile) fields(n ast.Node, what string) (list []field) {
	values, isMap := keysOf(n)
	if !isMap {
		if text, ok := scalarOf(n); !ok || text != "" {
			y.Problem(y.at(n), "%s must be keys with values: KEY: VALUE", quote(what))
		}
		return nil
	}
	for _, v := range values {
		at := Place{y.file, v.Key.GetToken().Position.Line}
		key, ok := scalarOf(v.Key)
		switch {
		case !ok:
			y.Problem(at, "the key must be a name; YAML's %s is not read here", strings.ToLower(v.Key.Type().String()))
		case key == "":
			y.Problem(at, "a key is empty")
		default:
			list = append(list, field{key, at, v.Value})
		}
	}
	return list
}

// items are the parts of a list; a single value is a list of one.
func (y *yamlFile) items(f field) []ast.Node {
	if list, isList := plain(f.value).(*ast.SequenceNode); isList {
		return list.Values
	}
	if text, ok := scalarOf(f.value); ok && text == "" {
		return nil
	}
	return []ast.Node{f.value}
}

func (y *yamlFile) scalar(n ast.Node, key string) (string, bool) {
	text, ok := scalarOf(n)
	switch {
	case !ok:
		y.Problem(y.at(n), "%s must be a single value; YAML's %s is not read here", quote(key), strings.ToLower(plain(n).Type().String()))
	case strings.ContainsRune(text, 0):
		y.Problem(y.at(n), "%s must be text; it has a byte with the value 0", quote(key))
	default:
		return text, true
	}
	return "", false
}

func (y *yamlFile) at(n ast.Node) Place {
	if n == nil || n.GetToken() == nil {
		return Place{File: y.file}
	}
	return Place{y.file, n.GetToken().Position.Line}
}

// plain takes tags and names of anchors off a node, which say nothing here.
func plain(n ast.Node) ast.Node {
	switch v := n.(type) {
	case *ast.TagNode:
		return plain(v.Value)
	case *ast.AnchorNode:
		return plain(v.Value)
	}
	return n
}

func keysOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch v := plain(n).(type) {
	case *ast.MappingNode:
		return v.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}, true
	}
	return nil, false
}

// scalarOf is a single value as it is written: null is the name of an output.
func scalarOf(n ast.Node) (string, bool) {
	switch v := plain(n).(type) {
	case nil:
		return "", true
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.NullNode:
		if v.Token.Type == token.ImplicitNullType { // KEY: and nothing behind it
			return "", true
		}
		return strings.TrimSpace(v.Token.Value), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(v.GetToken().Value), true
	}
	return "", false
}

// snake turns a key of YAML into the form of the classic one: retryLimit into retry_limit.
func snake(key string) string {
	if strings.Contains(key, "_") || key[0] < 'a' || key[0] > 'z' {
		return strings.ToLower(key)
	}
	var b strings.Builder
	for _, r := range key {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
