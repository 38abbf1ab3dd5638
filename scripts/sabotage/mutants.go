package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is one small change that the tool makes by itself.
type mutant struct {
	ID   int    `json:"-"`
	File string `json:"file"`
	Line int    `json:"line"`
	Col  int    `json:"col"`
	Does string `json:"does"`           // for example: < becomes <=
	Code string `json:"code"`           // the line it stands in
	Fate string `json:"fate,omitempty"` // killed, equal, survived, not run
	By   string `json:"by,omitempty"`   // the test that failed, or why it is equal
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", m.File, m.Line, m.Col, m.Does, m.Code)
}

// site puts all mutants of a package into its text at once, each behind a
// question for the number of the one that is asked for. So the tests are
// compiled once, not once for each mutant.
type site struct {
	fset    *token.FileSet
	info    *types.Info
	pkg     *types.Package
	skip    map[string]bool // "file:line" where no mutant compiles
	file    string
	src     []byte
	imports map[string]string // path -> name in this file
	edits   []edit
	mutants []*mutant
}

// edit replaces the text from at to end.
type edit struct {
	at, end int
	text    string
	order   int // among those of one place
}

// mutate returns the files of a package with its mutants in them. dir holds
// the tree on disk.
func mutate(t tree, dir, pkg string, skip map[string]bool) (tree, []*mutant, error) {
	s := &site{fset: token.NewFileSet(), skip: skip, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}}
	names, find, err := exports(dir, pkg)
	if err != nil {
		return nil, nil, err
	}
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(s.fset, path.Join(pkg, name), t[path.Join(pkg, name)], parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(s.fset, "gc", find)}
	if s.pkg, err = conf.Check(pkg, s.fset, files, s.info); err != nil {
		return nil, nil, err
	}
	changed := tree{path.Join(pkg, "mutant_on.go"): mutantOn(s.pkg.Name())}
	for _, f := range files {
		if ast.IsGenerated(f) {
			continue
		}
		s.file = s.fset.Position(f.Pos()).Filename
		s.src, s.edits, s.imports = t[s.file], nil, map[string]string{}
		for _, i := range f.Imports {
			if p, _ := strconv.Unquote(i.Path.Value); i.Name != nil {
				s.imports[p] = i.Name.Name
			} else {
				s.imports[p] = path.Base(p)
			}
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); !ok || g.Tok == token.VAR {
				ast.Inspect(d, s.visit)
			}
		}
		changed[s.file] = s.text()
	}
	return changed, s.mutants, nil
}

// exports asks the go command for the files of a package and for what its
// imports export.
func exports(dir, pkg string) (files []string, find importer.Lookup, err error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles,DepOnly", "./"+pkg)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("listing %s: %w", pkg, err)
	}
	export := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export string
			GoFiles            []string
			DepOnly            bool
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		if export[p.ImportPath] = p.Export; !p.DepOnly {
			files = p.GoFiles
		}
	}
	return files, func(name string) (io.ReadCloser, error) { return os.Open(filepath.Clean(export[name])) }, nil
}

// mutantOn is what the mutated package asks. What was asked at all is written
// to a file: a test that does not reach a mutant is not run for it.
func mutantOn(pkg string) []byte { return []byte("package " + pkg + mutantText) }

const mutantText = `

import ("cmp"; "os"; "strconv"; "strings"; "sync")

var mutantNow, _ = strconv.Atoi(mutantEnv("MUTANT"))
var mutantSeen = mutantEnv("MUTANTS_SEEN")
var mutantsSeen sync.Map

// mutantEnv asks the environment of the parent where a process was given none.
func mutantEnv(name string) string {
	if value, ok := os.LookupEnv(name); ok { return value }
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/environ")
	for line := range strings.SplitSeq(string(text), "\x00") {
		if value, ok := strings.CutPrefix(line, name+"="); ok { return value }
	}
	return ""
}

func mutantOn(n int) bool {
	if mutantSeen != "" {
		if _, before := mutantsSeen.LoadOrStore(n, true); !before {
			f, err := os.OpenFile(mutantSeen, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil { panic(err) }
			f.WriteString(strconv.Itoa(n) + "\n")
			f.Close()
		}
	}
	return n == mutantNow
}

type mutantWhole interface { ~int|~int8|~int16|~int32|~int64|~uint|~uint8|~uint16|~uint32|~uint64|~uintptr }
type mutantNumber interface { mutantWhole|~float32|~float64 }

func mutantLSS[T cmp.Ordered](n int, a, b T) bool { if mutantOn(n) { return a <= b }; return a < b }
func mutantLEQ[T cmp.Ordered](n int, a, b T) bool { if mutantOn(n) { return a < b }; return a <= b }
func mutantGTR[T cmp.Ordered](n int, a, b T) bool { if mutantOn(n) { return a >= b }; return a > b }
func mutantGEQ[T cmp.Ordered](n int, a, b T) bool { if mutantOn(n) { return a > b }; return a >= b }
func mutantADD[T mutantNumber](n int, a, b T) T { if mutantOn(n) { return a - b }; return a + b }
func mutantSUB[T mutantNumber](n int, a, b T) T { if mutantOn(n) { return a + b }; return a - b }
func mutantMUL[T mutantNumber](n int, a, b T) T { if mutantOn(n) { return a / b }; return a * b }
func mutantQUO[T mutantNumber](n int, a, b T) T { if mutantOn(n) { return a * b }; return a / b }
func mutantREM[T mutantWhole](n int, a, b T) T { if mutantOn(n) { return a * b }; return a % b }
func mutantAND[T mutantWhole](n int, a, b T) T { if mutantOn(n) { return a | b }; return a & b }
func mutantOR[T mutantWhole](n int, a, b T) T { if mutantOn(n) { return a & b }; return a | b }
func mutantOne[T mutantNumber](n int, a T) T { if mutantOn(n) { return a + 1 }; return a }
`

// swaps names the helper in mutantOn that swaps an operator, and by what.
var swaps = map[token.Token][2]string{
	token.LSS: {"LSS", "<="}, token.LEQ: {"LEQ", "<"}, token.GTR: {"GTR", ">="}, token.GEQ: {"GEQ", ">"},
	token.ADD: {"ADD", "-"}, token.SUB: {"SUB", "+"}, token.MUL: {"MUL", "/"}, token.QUO: {"QUO", "*"},
	token.REM: {"REM", "*"}, token.AND: {"AND", "|"}, token.OR: {"OR", "&"},
}

// visit finds the mutants of a node, and reports whether to look below it.
func (s *site) visit(n ast.Node) bool {
	if e, ok := n.(ast.Expr); ok && s.info.Types[e].Value != nil {
		return false
	}
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BlockStmt:
		s.remove(n.List)
	case *ast.CaseClause:
		s.remove(n.Body)
		s.values(n.List)
	case *ast.CommClause:
		s.remove(n.Body)
	case *ast.IfStmt:
		s.boolean(n.Cond, "")
	case *ast.ForStmt:
		s.boolean(n.Cond, "")
	case *ast.ReturnStmt:
		s.values(slices.DeleteFunc(slices.Clone(n.Results), func(e ast.Expr) bool { return len(n.Results) > 1 && s.of(e) == "0" })) // beside an error
	case *ast.AssignStmt:
		s.values(n.Rhs)
	case *ast.ValueSpec:
		s.values(n.Values)
	case *ast.KeyValueExpr:
		s.values([]ast.Expr{n.Value})
	case *ast.CallExpr:
		if s.of(n.Fun) == "make" {
			return false
		}
		s.values(n.Args)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			s.boolean(n.X, "")
		}
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.ArrayType:
		return false
	}
	return true
}

func (s *site) values(list []ast.Expr) {
	for _, e := range list {
		s.boolean(e, "")
		s.constant(e)
	}
}

// boolean makes an expression always true and always false or, as part of a
// larger one, what has no say in it.
func (s *site) boolean(e ast.Expr, silent string) {
	inner := ast.Unparen(e)
	v, known := s.info.Types[e]
	b, ok := v.Type.(*types.Basic)
	if e == nil || !known || !ok || b.Info()&types.IsBoolean == 0 || !v.IsValue() {
		return
	}
	if id, ok := inner.(*ast.Ident); v.Value != nil && (!ok || id.Name != "true" && id.Name != "false") {
		return
	}
	if _, ok := inner.(*ast.UnaryExpr); ok && silent == "" {
		return // its operand is made so
	}
	switch silent {
	case "true":
		s.wrap(e, short(s.of(e))+" is left out", "(mutantOn(%d) || (", "))")
	case "false":
		s.wrap(e, short(s.of(e))+" is left out", "(!mutantOn(%d) && (", "))")
	default:
		if id, ok := inner.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
			s.wrap(e, id.Name+" is negated", "(mutantOn(%d) != (", "))")
			break
		}
		s.wrap(e, short(s.of(e))+" is always true", "(mutantOn(%d) || (", "))")
		s.wrap(e, short(s.of(e))+" is always false", "(!mutantOn(%d) && (", "))")
	}
}

func (s *site) binary(n *ast.BinaryExpr) {
	if s.info.Types[n].Value != nil {
		return
	}
	switch n.Op {
	case token.LAND, token.LOR:
		silent := strconv.FormatBool(n.Op == token.LAND)
		for _, e := range []ast.Expr{n.X, n.Y} {
			if x, ok := ast.Unparen(e).(*ast.BinaryExpr); !ok || x.Op != n.Op {
				s.boolean(e, silent)
			}
		}
		return
	}
	if n.Op != token.EQL && n.Op != token.NEQ { // those are negated
		defer s.values([]ast.Expr{n.X, n.Y})
	}
	t, _ := s.info.Types[n.X].Type.Underlying().(*types.Basic)
	swap, ok := swaps[n.Op]
	if !ok || t == nil || t.Info()&types.IsString != 0 {
		return
	}
	if id := s.wrap(n, n.Op.String()+" becomes "+swap[1], "mutant"+swap[0]+"(%d, ", ")"); id > 0 {
		at := s.offset(n.OpPos)
		s.edits = append(s.edits, edit{at, at + len(n.Op.String()), ",", id})
	}
}

// constant makes a number one more.
func (s *site) constant(e ast.Expr) {
	v := s.info.Types[e]
	if v.Value == nil || !v.IsValue() {
		return
	}
	b, ok := v.Type.Underlying().(*types.Basic)
	if !ok || b.Info()&(types.IsInteger|types.IsFloat) == 0 || b.Info()&types.IsUntyped != 0 || b.Kind() == types.Uintptr {
		return
	}
	if _, named := v.Type.(*types.Named); named { // one of a list of names, unless it is written as a number
		if _, ok := ast.Unparen(e).(*ast.BasicLit); !ok {
			return
		}
	}
	known := true
	name := types.TypeString(v.Type, func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		n, ok := s.imports[p.Path()]
		known = known && ok
		return n
	})
	if known {
		s.wrap(e, short(s.of(e))+" becomes one more", "mutantOne["+name+"](%d, ", ")")
	}
}

// remove takes out each statement of a list that nothing behind it needs to compile.
func (s *site) remove(list []ast.Stmt) {
	for _, st := range list {
		switch n := st.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE || isBlank(n.Lhs) {
				continue
			}
		case *ast.ExprStmt:
			if c, ok := n.X.(*ast.CallExpr); ok && s.of(c.Fun) == "panic" {
				continue
			}
		case *ast.BranchStmt:
			if n.Tok == token.GOTO || n.Tok == token.FALLTHROUGH {
				continue
			}
		case *ast.ReturnStmt:
			if n.Results != nil {
				continue
			}
		case *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		default:
			continue
		}
		s.wrap(st, "removed", "if !mutantOn(%d) { ", " }")
	}
}

func isBlank(list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool { id, ok := e.(*ast.Ident); return !ok || id.Name != "_" })
}

// wrap makes a mutant of a node by text before and behind it.
func (s *site) wrap(n ast.Node, does, before, behind string) (id int) {
	at := s.fset.Position(n.Pos())
	if s.skip[fmt.Sprintf("%s:%d", s.file, at.Line)] {
		return 0
	}
	line, _, _ := bytes.Cut(s.src[at.Offset-at.Column+1:], []byte("\n"))
	id = len(s.mutants) + 1
	s.mutants = append(s.mutants, &mutant{ID: id, File: s.file, Line: at.Line, Col: at.Column, Does: does, Code: strings.TrimSpace(string(line))})
	end := s.offset(n.End())
	s.edits = append(s.edits, edit{at.Offset, at.Offset, fmt.Sprintf(before, id), id}, edit{end, end, behind, -id})
	return id
}

func (s *site) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// of is the text of a node.
func (s *site) of(n ast.Node) string { return string(s.src[s.offset(n.Pos()):s.offset(n.End())]) }

func short(text string) string {
	if text = strings.Join(strings.Fields(text), " "); len(text) > 60 {
		return strings.ToValidUTF8(text[:57], "") + "..."
	}
	return text
}

// text is the file with its edits. Of what begins at one place the outer, which
// was found first, stands first; of what ends there the inner does.
func (s *site) text() []byte {
	slices.SortFunc(s.edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	var out []byte
	from := 0
	for _, e := range s.edits {
		out = append(append(out, s.src[from:e.at]...), e.text...)
		from = e.end
	}
	return append(out, s.src[from:]...)
}
