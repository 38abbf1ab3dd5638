package httpapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/job"
)

// resources finds every resource of this package in its source: variables of
// their own, and entries of maps.
func resources(t *testing.T) (alone, maps []string) {
	t.Helper()
	pkgs, err := parser.ParseDir(token.NewFileSet(), ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // no build tags matter here
	if err != nil {
		t.Fatal(err)
	}
	isResource := func(e ast.Expr) bool {
		star, ok := e.(*ast.UnaryExpr)
		if !ok {
			return false
		}
		lit, ok := star.X.(*ast.CompositeLit)
		if !ok {
			return false
		}
		name, ok := lit.Type.(*ast.Ident)
		return ok && name.Name == "resource"
	}
	for _, file := range pkgs["httpapi"].Files {
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				v := spec.(*ast.ValueSpec)
				for i, value := range v.Values {
					if isResource(value) {
						alone = append(alone, v.Names[i].Name)
					} else if isMap(value) {
						maps = append(maps, v.Names[i].Name)
					}
				}
			}
		}
	}
	slices.Sort(alone)
	slices.Sort(maps)
	return alone, maps
}

// isMap reports whether an expression is a map of resources by name.
func isMap(e ast.Expr) bool {
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return false
	}
	m, ok := lit.Type.(*ast.MapType)
	if !ok {
		return false
	}
	star, ok := m.Value.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := star.X.(*ast.Ident)
	return ok && name.Name == "resource"
}

// declared is the names in the table of scopes.
func declared(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "scope.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != "scopes" {
			return true
		}
		for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
			if name, ok := e.(*ast.KeyValueExpr).Key.(*ast.Ident); ok {
				names = append(names, name.Name)
			}
		}
		return false
	})
	slices.Sort(names)
	return names
}

func TestEveryCallHasAScope(t *testing.T) {
	alone, maps := resources(t)
	if known := []string{"fixed", "ofEngine", "ofJob", "ofQueue", "ofSession"}; !slices.Equal(maps, known) {
		t.Errorf("there are the maps of resources %q; this test and scope.go know %q", maps, known)
	}
	if names := declared(t); !slices.Equal(alone, names) {
		t.Errorf("the resources are %q, and scope.go has %q: what is missing there is for the scope admin only", alone, names)
	}
	all := len(alone) + len(fixed) + len(ofJob) + len(ofQueue) + len(ofSession) + len(ofEngine)
	if scopes[nil].get.oneOf != 0 || len(scopes) != all {
		t.Errorf("scope.go has %d resources, there are %d", len(scopes), all)
	}
	check := func(name string, res *resource) {
		list, there := scopes[res]
		if !there {
			t.Errorf("%s has no scope in scope.go: it is for the scope admin only", name)
			return
		}
		for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if has, says := res.method(m) != nil, list.of(m).oneOf != 0; has && !says {
				t.Errorf("%s %s has no scope in scope.go: it is for the scope admin only", m, name)
			} else if says && !has {
				t.Errorf("%s %s has a scope in scope.go, and does not exist", m, name)
			}
		}
	}
	for _, m := range []map[string]*resource{fixed, ofJob, ofQueue, ofSession, ofEngine} {
		for name, res := range m {
			check(name, res)
		}
	}
	for res := range scopes {
		check("a resource", res)
	}
}

// undeclared is a call that somebody forgot in the table.
var undeclared = &resource{get: func(_ *handler, w http.ResponseWriter, _ *http.Request, _, _ string) { w.WriteHeader(http.StatusOK) }}

func TestACallThatNobodyDeclaredIsForTheAdmin(t *testing.T) {
	now := func() job.Millis { return 0 }
	for _, scope := range job.ScopesAll.Names() {
		text := job.NewSecret(rand.Uint64)
		c := job.Credential{Name: "n"}
		c.ID, c.Hash, _ = job.ParseSecret(text)
		c.Scopes, _ = job.ParseScopes([]string{scope})
		h := New(Options{Null: true, Tokens: auth.New([]job.Credential{c}, now)}).(*handler)
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://localhost/x", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		if in := h.admit(w, r, undeclared, "") != nil; in != (scope == "admin") {
			t.Errorf("the scope %s is let in: %t", scope, in)
		}
	}
}

// Whoever reaches a call without a token must be meant to.
func TestOnlyTheProbesAreOpen(t *testing.T) {
	var open []string
	for name, res := range fixed {
		for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if list := scopes[res]; list.of(m).oneOf == public {
				open = append(open, m+" "+name)
			}
		}
	}
	slices.Sort(open)
	if strings.Join(open, ", ") != "GET /health, GET /ready" {
		t.Errorf("without a token one may call %q", open)
	}
	for _, res := range []*resource{oneJob, oneQueue, oneToken, profiles} {
		list := scopes[res]
		if list.get.oneOf == public || list.del.oneOf == public {
			t.Error("more is open")
		}
	}
}
