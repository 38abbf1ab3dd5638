package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// contract holds exchanges to GET /openapi.json. It is stricter than the
// document: a member that is not in it is a fault, so that whoever adds one has
// to describe it.
type contract struct {
	doc map[string]any

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	seen     map[string]int // answers that were checked, by operation
}

const docURL = "http://localhost/openapi.json"

var described = sync.OnceValue(func() *contract {
	w := httptest.NewRecorder()
	httpapi.New(httpapi.Options{Null: true}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, docURL, nil))
	doc, err := jsonschema.UnmarshalJSON(w.Body)
	if err != nil {
		panic(err)
	}
	c := &contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler(), seen: map[string]int{}}
	components := member(c.doc, "components")
	open := map[string]any{}
	for name, s := range member(components, "schemas") {
		open[name] = seal(s, true)
	}
	sealContent(c.doc)
	components["open"] = open
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := c.compiler.AddResource(docURL, doc); err != nil {
		panic(err)
	}
	return c
})

func member(m map[string]any, path ...string) map[string]any {
	for _, name := range path {
		m, _ = m[name].(map[string]any)
	}
	return m
}

// sealContent seals every schema below a value of the document.
func sealContent(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, part := range v {
			_, isMap := part.(map[string]any)
			switch {
			case name == "schemas" && isMap:
				for s, schema := range part.(map[string]any) {
					part.(map[string]any)[s] = seal(schema, false)
				}
			case (name == "schema" || name == "x-itemSchema") && isMap:
				v[name] = seal(part, false)
			case name != "examples" && name != "example":
				sealContent(part)
			}
		}
	case []any:
		for _, part := range v {
			sealContent(part)
		}
	}
}

// seal returns a schema that refuses members which it does not name. An open
// one is part of another, which names more.
func seal(v any, open bool) any {
	from, ok := v.(map[string]any)
	if !ok {
		return v
	}
	s := maps.Clone(from)
	if ref, ok := s["$ref"].(string); ok && open {
		s["$ref"] = strings.Replace(ref, "/schemas/", "/open/", 1)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if part, ok := s[name]; ok {
			s[name] = seal(part, false)
		}
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[name].([]any)
		list = slices.Clone(list)
		for i := range list {
			list[i] = seal(list[i], name == "allOf")
		}
		if list != nil {
			s[name] = list
		}
	}
	members := maps.Clone(member(s, "properties"))
	for name := range members {
		members[name] = seal(members[name], false)
	}
	if members != nil {
		s["properties"] = members
	}
	if _, says := s["additionalProperties"]; !says && !open && (members != nil || s["allOf"] != nil) {
		s["unevaluatedProperties"] = false
	}
	return s
}

// valid checks a value against the schema at a place of the document.
func (c *contract) valid(v any, place ...string) error {
	for i, name := range place {
		place[i] = url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.compiler.Compile(docURL + "#/" + strings.Join(place, "/"))
	if err == nil {
		err = s.Validate(v)
	}
	return err
}

// operations is how many calls were checked.
func (c *contract) operations() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// at finds a value of the document, and its place behind references.
func (c *contract) at(place ...string) (map[string]any, []string) {
	m := member(c.doc, place...)
	if ref, ok := m["$ref"].(string); ok {
		return c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return m, place
}

// path finds the template of a request's path: the one with most words of its
// own. A cron group may be called preview; only with an expression it is not
// one.
func (c *contract) path(r *http.Request) string {
	best, words := "", -1
	asked := strings.Split(r.URL.EscapedPath(), "/")
	for template := range member(c.doc, "paths") {
		parts, n := strings.Split(template, "/"), 0
		if len(parts) != len(asked) || template == "/crons/preview" && !r.URL.Query().Has("expression") {
			continue
		}
		for i, part := range parts {
			switch {
			case part == asked[i]:
				n++
			case !strings.HasPrefix(part, "{") || asked[i] == "":
				n -= len(parts)
			}
		}
		if n > words {
			best, words = template, n
		}
	}
	return best
}

func methodOf(r *http.Request) string {
	if r.Method == http.MethodHead {
		return "get"
	}
	return strings.ToLower(r.Method)
}

// Everybody may meet these at any call; they stand in the response "default".
var usual = []int{
	http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable, http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// check says how an exchange differs from the document; nil = not at all. body
// is what was sent, answer what came back.
func (c *contract) check(r *http.Request, body []byte, resp *http.Response, answer []byte) error {
	path, method := c.path(r), methodOf(r)
	operation := member(c.doc, "paths", path, method)
	switch {
	case strings.HasPrefix(r.URL.Path, "/debug/pprof/"): // the Go runtime's own
		return nil
	case path == "" && resp.StatusCode == http.StatusForbidden: // before it is looked for
		return nil
	case path == "" && resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusNotAcceptable:
		return fmt.Errorf("the path %s is not described, and exists", r.URL.Path)
	case path != "" && operation == nil && resp.StatusCode != http.StatusMethodNotAllowed && resp.StatusCode != http.StatusForbidden:
		return fmt.Errorf("%s is not described, and exists", r.Method)
	case operation == nil:
		return nil
	}
	if resp.StatusCode < 300 {
		if err := c.checkRequest(path, method, r, body); err != nil {
			return &requestError{err}
		}
	}
	status := strconv.Itoa(resp.StatusCode)
	place := []string{"paths", path, method, "responses", status}
	if member(c.doc, place...) == nil {
		if !slices.Contains(usual, resp.StatusCode) {
			return fmt.Errorf("the status %s is not described", status)
		}
		place[4] = "default"
	}
	response, place := c.at(place...)
	c.mu.Lock()
	c.seen[method+" "+path]++
	c.mu.Unlock()
	if len(answer) == 0 {
		if response["content"] != nil && r.Method != http.MethodHead {
			return fmt.Errorf("the status %s has no body", status)
		}
		return nil
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if member(response, "content", media) == nil {
		return fmt.Errorf("the status %s is not described as %q", status, media)
	}
	if media != "application/json" {
		return nil
	}
	return c.validJSON(answer, append(slices.Clone(place), "content", media, "schema")...)
}

// requestError is about a request that was accepted.
type requestError struct{ error }

func (e *requestError) Error() string { return "the request, which was accepted: " + e.error.Error() }
func (e *requestError) Unwrap() error { return e.error }

// tolerated reports whether all that is wrong with a request is that it has
// members that nobody knows, or null where one is left out: both are ignored.
func tolerated(err error) bool {
	var request *requestError
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &request) || !errors.As(err, &invalid) {
		return false
	}
	var only func(e *jsonschema.ValidationError) bool
	only = func(e *jsonschema.ValidationError) bool {
		switch k := e.ErrorKind.(type) {
		case *kind.FalseSchema:
			return true
		case *kind.Type:
			return k.Got == "null"
		}
		return len(e.Causes) > 0 && !slices.ContainsFunc(e.Causes, func(c *jsonschema.ValidationError) bool { return !only(c) })
	}
	return only(invalid)
}

// checkItem does so with one line of a stream.
func (c *contract) checkItem(r *http.Request, media string, line []byte) error {
	return c.validJSON(line, "paths", c.path(r), "get", "responses", "200", "content", media, "x-itemSchema")
}

func (c *contract) validJSON(text []byte, place ...string) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = c.valid(v, place...)
	}
	return err
}

func (c *contract) checkRequest(path, method string, r *http.Request, body []byte) error {
	if err := c.checkParams(path, method, r); err != nil {
		return err
	}
	place := []string{"paths", path, method, "requestBody"}
	says := member(c.doc, place...)
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case says == nil, len(body) == 0 && says["required"] == false, r.Header.Get("Content-Encoding") != "":
		return nil // what is not described is not read
	case media != "" && member(says, "content", media) == nil:
		return fmt.Errorf("a body of %s is not described", media)
	case media != "" && media != "application/json":
		return nil
	}
	return c.validJSON(body, append(place, "content", "application/json", "schema")...)
}

// anyHeaders are those of HTTP itself, and of browsers and proxies.
var anyHeaders = []string{
	"Accept", "Accept-Encoding", "Authorization", "Content-Encoding", "Content-Type", "Host", "Origin", "Sec-Fetch-Site", "User-Agent",
	"Access-Control-Request-Method", "Forwarded", "Prefer", "Via",
}

// checkParams looks at headers and the query: each must be described, and each
// parameter have a value that may be.
func (c *contract) checkParams(path, method string, r *http.Request) error {
	places, headers := map[string][]string{}, slices.Clone(anyHeaders)
	for _, holder := range [][]string{{"paths", path}, {"paths", path, method}} {
		list, _ := member(c.doc, holder...)["parameters"].([]any)
		for i := range list {
			p, place := list[i].(map[string]any), append(slices.Clone(holder), "parameters", strconv.Itoa(i))
			if ref, ok := p["$ref"].(string); ok {
				p, place = c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
			switch name := p["name"].(string); p["in"] {
			case "query":
				places[name] = place
			case "header":
				headers = append(headers, http.CanonicalHeaderKey(name))
			}
		}
	}
	for name := range r.Header {
		if !slices.Contains(headers, name) && !strings.HasPrefix(name, "X-") {
			return fmt.Errorf("the header %s is not described", name)
		}
	}
	for name, values := range r.URL.Query() {
		place := places[name]
		if place == nil {
			return fmt.Errorf("the parameter %q is not described", name)
		}
		if values[0] == "" {
			continue // as if it were not there
		}
		if err := c.checkParam(place, values); err != nil {
			return fmt.Errorf("the parameter %q: %w", name, err)
		}
	}
	return nil
}

func (c *contract) checkParam(place, values []string) error {
	if place[0] == "paths" { // in a list, which object does not look into
		last := len(place) - 1
		i, _ := strconv.Atoi(place[last])
		list, _ := member(c.doc, place[:last-1]...)["parameters"].([]any)
		return c.checkValue(list[i].(map[string]any), place, values)
	}
	return c.checkValue(member(c.doc, place...), place, values)
}

func (c *contract) checkValue(p map[string]any, place, values []string) error {
	if member(p, "content") != nil {
		return c.validJSON([]byte(values[0]), append(slices.Clone(place), "content", "application/json", "schema")...)
	}
	schema := member(p, "schema")
	for schema["$ref"] != nil {
		schema, _ = c.at(strings.Split(strings.TrimPrefix(schema["$ref"].(string), "#/"), "/")...)
	}
	var v any = values[0]
	switch schema["type"] {
	case "array":
		if p["explode"] == false {
			values = slices.DeleteFunc(strings.Split(values[0], ","), func(s string) bool { return s == "" })
		}
		list := make([]any, len(values))
		for i := range values {
			list[i] = values[i]
		}
		v = list
	case "integer", "number", "boolean":
		var err error
		if v, err = jsonschema.UnmarshalJSON(strings.NewReader(values[0])); err != nil {
			return err
		}
	}
	return c.valid(v, append(slices.Clone(place), "schema")...)
}
