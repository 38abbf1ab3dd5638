package httpapi

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// route is one call: all that is known of it before it runs. A room lists its
// calls; which paths and methods there are, who may call what, and how long
// which class of calls took comes from these lists. To add a call, add an entry
// to the list of its room and write the function that the entry names.
type route struct {
	method string
	path   string     // as OpenAPI writes it; at most two segments may be variable
	oneOf  job.Scopes // any of these lets in; 0 = only admin does
	reach  reach
	serve  handle

	body   reflect.Type // the shape of its body; nil = it has none, or its function reads it
	stream bool         // it negotiates its own format, and is not measured
	waits  bool         // it may be long in answering
	class  string       // under which it is measured; "" = a read if it is a GET, else an operation
}

// handle serves a call by itself. id and sub are the variable segments of the
// path, unescaped.
type handle func(w http.ResponseWriter, r *http.Request, id, sub string)

// reach is how a call says which queues it touches, so that a token for some
// queues can be held to them.
type reach uint8

const (
	wholeServer reach = iota // nothing says it: such a token is refused
	queryQueues              // the parameter queue, which has to be there
	pathQueue                // the queue is in the path; patterns of queues are patterns of locks and inboxes, too
	pathJob                  // a job is, and has a queue
	handlerAsks              // the handler looks, because it is in the body: see reachQueues
	ownOnly                  // the handler shows what the token is for
	ownNames                 // what it names belongs to the token: see worker
	noQueue                  // it touches none
)

const (
	enqueues = job.ScopeEnqueue
	works    = job.ScopeWork
	reads    = job.ScopeRead
	operates = job.ScopeOperate
	admins   = job.ScopeAdmin
	anybody  = job.ScopesAll
	public   = job.ScopesAll + 1 // such calls need no token at all
)

// endpoint is what serves a route, with the shape of the body that it reads.
type endpoint struct {
	serve handle
	body  reflect.Type
}

var get, post, put, patch, del = on(http.MethodGet), on(http.MethodPost), on(http.MethodPut), on(http.MethodPatch), on(http.MethodDelete)

func on(method string) func(path string, oneOf job.Scopes, of reach, by endpoint) route {
	return func(path string, oneOf job.Scopes, of reach, by endpoint) route {
		return route{method: method, path: path, oneOf: oneOf, reach: of, serve: by.serve, body: by.body}
	}
}

func (t route) as(class string) route { t.class = class; return t }
func (t route) streaming() route      { t.stream = true; return t }
func (t route) waiting() route        { t.waits = true; return t }

// measure is the class under which the time of a call is noted.
func (t *route) measure() string {
	switch {
	case t.class != "":
		return t.class
	case t.method == http.MethodGet:
		return "read"
	}
	return "operate"
}

// resource is a path with the calls that it has, by method.
type resource []*route

func (list resource) method(name string) *route {
	if name == http.MethodHead {
		name = http.MethodGet
	}
	for _, t := range list {
		if t.method == name {
			return t
		}
	}
	return nil
}

// allow lists the methods for the header of a 405.
func (list resource) allow() string {
	var methods []string
	for _, t := range list {
		if methods = append(methods, t.method); t.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// paths finds resources. A segment that is written out wins over a variable one.
type paths struct {
	whole map[string]*resource // those without variable segments
	below node
}

type node struct {
	here  resource
	next  map[string]*node
	other *node // a variable segment
}

func newPaths(list []route) *paths {
	p := &paths{whole: map[string]*resource{}}
	for i := range list {
		t, at := &list[i], &p.below
		for _, seg := range strings.Split(t.path, "/")[1:] {
			into := &at.other
			if !strings.HasPrefix(seg, "{") {
				if at.next == nil {
					at.next = map[string]*node{}
				}
				if at.next[seg] == nil {
					at.next[seg] = &node{}
				}
				at = at.next[seg]
				continue
			}
			if *into == nil {
				*into = &node{}
			}
			at = *into
		}
		if at.here.method(t.method) != nil {
			panic("httpapi: two calls are " + t.method + " " + t.path)
		}
		if at.here = append(at.here, t); !strings.Contains(t.path, "{") {
			p.whole[t.path] = &at.here
		}
	}
	return p
}

// find routes on the raw segments of the path: nothing is cleaned, nothing
// redirected, and an escaped slash is part of its segment.
func (p *paths) find(u *url.URL) (res *resource, id, sub string) {
	path := u.RawPath
	if path == "" { // escaped as usual: Path holds no slash that was escaped
		if res := p.whole[u.Path]; res != nil {
			return res, "", ""
		}
		path = u.Path
	}
	seg := strings.Split(path, "/")
	if u.RawPath != "" {
		for i := range seg {
			seg[i], _ = url.PathUnescape(seg[i]) // net/url checked the escapes
		}
	}
	if seg[0] != "" {
		return nil, "", ""
	}
	var vars [2]string
	res = p.below.find(seg[1:], vars[:0])
	return res, vars[0], vars[1]
}

// find puts the variable segments on its way into vars.
func (n *node) find(seg, vars []string) *resource {
	if len(seg) == 0 {
		if n.here == nil {
			return nil
		}
		return &n.here
	}
	if next := n.next[seg[0]]; next != nil {
		if res := next.find(seg[1:], vars); res != nil {
			return res
		}
	}
	if n.other == nil || seg[0] == "" {
		return nil
	}
	return n.other.find(seg[1:], append(vars, seg[0]))
}
