package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var anyCalls = flag.Int("any-calls", 4000, "calls of TestAnyCallsEndNoProcess")

// Any calls, in any order, with kill -9 between: every operation of the
// OpenAPI document, with what earlier answers named (jobs, tasks, messages,
// tokens live and stale, sessions, inboxes, ...) wherever something of the kind
// is meant and sometimes where it is not, bodies legal and hostile. No process
// ends by itself, nothing is answered 500, every start succeeds, and in the end
// every job can be reached and everything can be deleted.
func TestAnyCallsEndNoProcess(t *testing.T) {
	told(t)
	t.Parallel()
	const callers, perRound = 12, 25_000
	dir := t.TempDir()
	config := write(t, filepath.Join(dir, "any.yaml"), "auth: {tokens: {adm: {secret: "+anyToken+", scopes: [admin]}}}\n")
	root := filepath.Join(dir, "root")
	args := []string{"-c", config, "--reattach-window", "2s"}
	s := start(t, root, args...)
	args = append(args, "--port", s.port())
	doc := fetchDoc(t, s)
	rnd := dice(99)
	w := &anyWorld{doc: doc, calls: doc.operations(), pool: map[string][]any{}, rnd: rnd, answers: map[int]int{}, worked: map[string]int{}}
	for done, per := 0, min(perRound, max(*anyCalls/4, 1)); done < *anyCalls; {
		w.prepare(t, s)
		n := min(per, *anyCalls-done)
		var wg sync.WaitGroup
		down := make(chan struct{})
		for i := range callers {
			share := n / callers
			if i == 0 {
				share += n % callers
			}
			own := rand.New(rand.NewPCG(rnd.Uint64(), 1))
			wg.Go(func() {
				for range share {
					w.call(t, s, own, down)
				}
			})
		}
		wg.Wait()
		done += n
		select {
		case <-s.exited:
			t.Fatalf("the server ended by itself:\n%s", s.output())
		default:
		}
		s.saysNoFault(t)
		for range callers { // some are under way when it dies
			own := rand.New(rand.NewPCG(rnd.Uint64(), 2))
			wg.Go(func() {
				for range 20 {
					w.call(t, s, own, down)
				}
			})
		}
		close(down)
		s.kill()
		wg.Wait()
		s = start(t, root, args...)
		t.Logf("%d calls", done)
	}
	w.reachable(t, s)
	t.Logf("%d calls; answers by status: %v", *anyCalls, w.answers)
	for i := range w.calls {
		if name := w.calls[i].method + " " + w.calls[i].path; w.worked[name] == 0 {
			t.Logf("never succeeded: %s", name)
		}
	}
}

const anyToken = "rp_7pgtclsj9m_k5lhd3s2spvikm5qib5sgnagh3vofoc039fcbbedj9jpg9psen6l"

// saysNoFault wants no line of the log to tell of a fault of the server.
func (s *server) saysNoFault(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		if strings.Contains(line, "a fault of the server") || strings.Contains(line, "panic") || strings.Contains(line, "a commit failed") {
			t.Errorf("the log says %s", line[:min(len(line), 3000)])
			break
		}
	}
	s.lines = nil
}

// anyDoc is the OpenAPI document of the server.
type anyDoc map[string]any

func fetchDoc(t *testing.T, s *server) anyDoc {
	t.Helper()
	doc := anyDoc(s.must(t, "GET", "/openapi.json", ""))
	if len(doc.operations()) < 100 {
		t.Fatalf("the document has %d operations", len(doc.operations()))
	}
	return doc
}

// anyCall is an operation of the document.
type anyCall struct {
	method, path string
	params       []map[string]any
	body         map[string]any // its schema; nil = none
}

// at follows the reference of a node, if it is one.
func (d anyDoc) at(v any) map[string]any {
	m, _ := v.(map[string]any)
	for range 10 {
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		var node any = map[string]any(d)
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			inner, _ := node.(map[string]any)
			node = inner[part]
		}
		m, _ = node.(map[string]any)
	}
	return m
}

func (d anyDoc) operations() (list []anyCall) {
	paths := d.at(d["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := d.at(paths[path])
		for _, method := range []string{"get", "put", "post", "patch", "delete"} {
			o, ok := item[method].(map[string]any)
			if !ok || path == "/reset" || path == "/openapi.json" { // prepare does the one now and then
				continue
			}
			c := anyCall{method: strings.ToUpper(method), path: path}
			common, _ := item["parameters"].([]any)
			own, _ := o["parameters"].([]any)
			for _, p := range slices.Concat(common, own) {
				c.params = append(c.params, d.at(p))
			}
			content := d.at(d.at(o["requestBody"])["content"])
			c.body = d.at(d.at(content["application/json"])["schema"])
			if d.at(o["requestBody"]) != nil && c.body == nil {
				c.body = map[string]any{}
			}
			list = append(list, c)
		}
	}
	return list
}

// anyWorld is what the callers share.
type anyWorld struct {
	doc   anyDoc
	calls []anyCall
	rnd   *rand.Rand // of prepare

	mu      sync.Mutex       // guards what follows
	pool    map[string][]any // values that answers held, by the name of their kind
	records []map[string]any // values that stood together, such as a job and its lease
	leased  []map[string]any // the latest of them that are a job and its lease
	about   map[string]any   // the record that the request being made is about; nil = none
	answers map[int]int      // how many, by status
	worked  map[string]int   // calls that succeeded, by operation
}

// kinds are names of members and parameters that mean the same.
var kinds = map[string]string{
	"job": "id", "task": "id", "message": "id", "ids": "id", "needs": "id", "head": "id", "sample": "id", "engine": "id", "key": "name",
	"token": "lease", "secret": "lease", "queue": "name", "queues": "name", "session": "name", "sessions": "name", "inbox": "name",
	"group": "name", "groups": "name", "worker": "name", "name": "name", "budget": "name", "budgets": "name", "lock": "name",
	"unique_key": "name", "entry": "name", "fingerprint": "fingerprint", "fingerprints": "fingerprint", "Lock-Token": "lease",
	"Worker-Id": "name", "Idempotency-Key": "name", "X-CORRELATE-ID": "name", "stopped": "lease", "type": "name",
}

func kindOf(name string) string {
	if k, ok := kinds[name]; ok {
		return k
	}
	return name
}

// anyNames are the same few for everything, so that things meet.
var anyNames = []any{"q1", "q2", "s1", "s2", "s3", "i1", "i2", "c1", "b1", "b2", "l1", "e1", "e2", "w1", "g1", "g2"}

// usual are the names that calls of a kind mostly speak of.
var usual = map[string][]string{
	"inboxes": {"i1", "i2"}, "sessions": {"s1", "s2", "s3"}, "engines": {"e1", "e2"}, "locks": {"l1"}, "budgets": {"b1", "b2"},
	"crons": {"c1"}, "queues": {"q1", "q2", "s1", "i1"},
}

// ofRun are calls about a run that goes on.
var ofRun = regexp.MustCompile(`settle|success|failure|release|extend|progress|try_commit|heartbeat`)

const poolMost = 64

// keep remembers what an answer holds.
func (w *anyWorld) keep(name string, v any, r *rand.Rand) {
	switch v := v.(type) {
	case map[string]any:
		record := map[string]any{}
		for k, inner := range v {
			switch inner.(type) {
			case string, float64:
				record[kindOf(k)] = inner
				if k == "queue" || k == "id" && v["epoch"] != nil || k == "name" {
					record["name"] = inner
				}
			}
		}
		if record["id"] != nil || record["lease"] != nil {
			if record["lease"] != nil && record["id"] != nil {
				w.leased = append(w.leased[max(0, len(w.leased)-poolMost):], record)
			}
			if len(w.records) < 4*poolMost {
				w.records = append(w.records, record)
			} else {
				w.records[r.IntN(len(w.records))] = record
			}
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			w.keep(k, v[k], r)
		}
	case []any:
		for i := 0; i < len(v) && i < 20; i++ {
			w.keep(name, v[i], r)
		}
	case string, float64:
		if text, ok := v.(string); ok && (text == "" || len(text) > 100) {
			return
		}
		kind := kindOf(name)
		if list := w.pool[kind]; len(list) < poolMost {
			w.pool[kind] = append(list, v)
		} else {
			list[r.IntN(poolMost)] = v
		}
	}
}

// met is a value of a kind that was met.
func (w *anyWorld) met(name string, r *rand.Rand) any {
	if v := w.about[kindOf(name)]; v != nil && r.IntN(10) > 0 {
		return v
	}
	if kind := kindOf(name); r.IntN(12) > 0 {
		if list := w.pool[kind]; len(list) > 0 && (kind != "name" || r.IntN(3) == 0) {
			return list[r.IntN(len(list))]
		}
	} else if list := w.pool[[]string{"id", "lease", "name", "epoch", "cursor"}[r.IntN(5)]]; len(list) > 0 {
		return list[r.IntN(len(list))]
	}
	return anyNames[r.IntN(len(anyNames))]
}

var hostile = []any{
	"", "\x00", "a/b", "../..", "q*", "é", "\u202e", strings.Repeat("x", 3000), nil, true, -1, 0, 1, 1e18, 9223372036854775807.0, 1.5, "null",
	"PT5S", "5s", "-1s", "1h",
	[]any{},
	map[string]any{},
	[]any{[]any{[]any{}}},
	"2100-01-01T00:00:00Z", ".id", `def f: f; f`, "*/5 * * * *",
}

// value makes one for a member, by its schema and its name.
func (w *anyWorld) value(name string, schema map[string]any, r *rand.Rand, deep int) any {
	schema = w.doc.at(schema)
	if r.IntN(40) == 0 {
		return hostile[r.IntN(len(hostile))]
	}
	for _, choice := range []string{"oneOf", "anyOf"} {
		if list, _ := schema[choice].([]any); len(list) > 0 && schema["properties"] == nil {
			return w.value(name, w.doc.at(list[r.IntN(len(list))]), r, deep+1)
		}
	}
	if list, _ := schema["enum"].([]any); len(list) > 0 {
		return list[r.IntN(len(list))]
	}
	if c, ok := schema["const"]; ok {
		return c
	}
	if x, _ := schema["examples"].([]any); len(x) > 0 && r.IntN(8) == 0 {
		return x[r.IntN(len(x))]
	}
	kind, _ := schema["type"].(string)
	if list, _ := schema["type"].([]any); len(list) > 0 {
		kind, _ = list[r.IntN(len(list))].(string)
	}
	if all, _ := schema["allOf"].([]any); len(all) > 0 || schema["properties"] != nil {
		kind = "object"
	}
	switch kind {
	case "object":
		return w.object(schema, r, deep)
	case "array":
		list := []any{}
		for range r.IntN(4) {
			if deep < 6 {
				list = append(list, w.value(name, w.doc.at(schema["items"]), r, deep+1))
			}
		}
		return list
	case "integer", "number":
		if v := w.about[kindOf(name)]; v != nil && r.IntN(3) > 0 {
			return v
		}
		if list := w.pool[kindOf(name)]; len(list) > 0 && r.IntN(2) == 0 {
			return list[r.IntN(len(list))]
		}
		switch {
		case name == "seq":
			return 1 + r.IntN(100_000)
		case strings.HasSuffix(name, "_at") || strings.HasPrefix(name, "expires"):
			return time.Now().UnixMilli() + int64(r.IntN(6000)-2000)
		case strings.HasPrefix(name, "wait"):
			return r.IntN(30)
		}
		return []int64{0, 1, 2, 3, 10, 100, 1000, 5000, -1, 1 << 31, 1 << 53}[min(r.IntN(14), 10)]
	case "boolean":
		return r.IntN(2) == 0
	case "null":
		return nil
	}
	if name == "payload" || name == "checkpoint" || name == "result" {
		return map[string]any{"v": r.IntN(5)}
	}
	return w.met(name, r)
}

func (w *anyWorld) object(schema map[string]any, r *rand.Rand, deep int) map[string]any {
	out := map[string]any{}
	all, _ := schema["allOf"].([]any)
	for _, part := range all {
		maps.Copy(out, w.object(w.doc.at(part), r, deep+1))
	}
	properties := w.doc.at(schema["properties"])
	required, _ := schema["required"].([]any)
	if list, _ := schema["oneOf"].([]any); len(list) > 0 {
		more, _ := w.doc.at(list[r.IntN(len(list))])["required"].([]any)
		required = slices.Concat(required, more)
	}
	few := 1 + r.IntN(5)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if must := slices.Contains(required, any(name)); must && r.IntN(50) > 0 || !must && deep < 6 && r.IntN(1+len(properties)) < few {
			out[name] = w.value(name, w.doc.at(properties[name]), r, deep+1)
		}
	}
	return out
}

var anyVariable = regexp.MustCompile(`\{[a-z]+\}`)

// request makes one call.
func (w *anyWorld) request(r *rand.Rand) (c *anyCall, target string, header http.Header, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c = &w.calls[r.IntN(len(w.calls))]
	if r.IntN(3) == 0 { // what makes work, and moves it, is asked for more often
		busy := []string{
			"POST /jobs", "POST /sessions/{id}/tasks", "POST /inboxes/{name}/messages", "POST /jobs/lease", "POST /inboxes/{name}/lease",
			"POST /jobs/settle", "PATCH /jobs/{id}", "POST /sessions", "POST /engines", "POST /jobs/extend", "PATCH /jobs", "POST /jobs/{id}/failure",
		}
		want := busy[r.IntN(len(busy))]
		if i := slices.IndexFunc(w.calls, func(c anyCall) bool { return c.method+" "+c.path == want }); i >= 0 {
			c = &w.calls[i]
		}
	}
	if w.about = nil; len(w.records) > 0 && r.IntN(4) > 0 {
		w.about = w.records[r.IntN(len(w.records))]
	}
	if len(w.leased) > 0 && w.about != nil && ofRun.MatchString(c.path) {
		w.about = w.leased[r.IntN(len(w.leased))]
	}
	target = anyVariable.ReplaceAllStringFunc(c.path, func(v string) string {
		name := strings.Trim(v, "{}")
		if list := usual[strings.SplitN(c.path, "/", 3)[1]]; list != nil && strings.Index(c.path, v) == strings.Index(c.path, "{") && (w.about["name"] == nil || !ofRun.MatchString(c.path)) && r.IntN(3) > 0 {
			return list[r.IntN(len(list))]
		}
		if name == "id" && !strings.HasPrefix(c.path, "/jobs") && !strings.HasPrefix(c.path, "/dead") && r.IntN(4) > 0 {
			name = "name"
		}
		return url.PathEscape(fmt.Sprint(w.met(name, r)))
	})
	query := url.Values{}
	header = http.Header{}
	for _, p := range c.params {
		name, _ := p["name"].(string)
		in, _ := p["in"].(string)
		if in == "path" || p["required"] != true && r.IntN(6) > 0 {
			continue
		}
		v := w.value(name, w.doc.at(p["schema"]), r, 0)
		text := fmt.Sprint(v)
		if list, ok := v.([]any); ok {
			parts := make([]string, len(list))
			for i := range list {
				parts[i] = fmt.Sprint(list[i])
			}
			text = strings.Join(parts, ",")
		}
		if in == "query" {
			query.Set(name, text)
		} else if !strings.ContainsAny(text, "\x00\r\n") {
			header.Set(name, text)
		}
	}
	if c.path == "/jobs" && c.method == "DELETE" && r.IntN(50) > 0 {
		query.Set("ids", fmt.Sprint(w.met("id", r)))
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	switch token := r.IntN(30); {
	case token > 1:
		header.Set("Authorization", "Bearer "+anyToken)
	case token == 1:
		if text, ok := w.met("lease", r).(string); ok {
			header.Set("Authorization", "Bearer "+url.QueryEscape(text))
		}
	}
	if c.body != nil {
		body, _ = json.Marshal(w.value("", c.body, r, 0))
		header.Set("Content-Type", "application/json")
		if r.IntN(60) == 0 && len(body) > 0 {
			body[r.IntN(len(body))] = byte(r.IntN(256))
		}
		if strings.HasSuffix(c.path, "/messages") {
			header.Set("X-CORRELATE-ID", fmt.Sprint("m", r.IntN(1000)))
		}
	}
	return c, target, header, body
}

// call makes one call and holds the answer against what may be. down is closed
// before the server is killed.
func (w *anyWorld) call(t *testing.T, s *server, r *rand.Rand, down chan struct{}) {
	c, target, header, body := w.request(r)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if strings.HasPrefix(c.path, "/jobs/take") || c.path == "/events" || c.path == "/jobs/lease" || strings.HasSuffix(c.path, "/lease") || strings.HasSuffix(c.path, "/results") {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(5+r.IntN(60))*time.Millisecond)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, c.method, s.url+target, bytes.NewReader(body))
	if err != nil {
		return
	}
	maps.Copy(req.Header, header)
	res, err := anyClient.Do(req)
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(io.LimitReader(res.Body, 1<<20))
		_ = res.Body.Close()
	}
	if res == nil || err != nil && len(answer) == 0 {
		select {
		case <-down:
		default:
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil && strings.Contains(err.Error(), "deadline") {
				return // it left a stream, or what waits
			}
			t.Errorf("%s %s %s: %v", c.method, target, body, err)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[res.StatusCode]++
	if res.StatusCode < 300 {
		w.worked[c.method+" "+c.path]++
	}
	if res.StatusCode == http.StatusInternalServerError {
		t.Errorf("%s %s %s\n%s", c.method, target, body, answer)
	}
	for _, line := range bytes.Split(answer, []byte("\n")) {
		var v any
		if json.Unmarshal(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("data:")), &v) == nil && v != nil {
			w.keep("", v, r)
		}
	}
}

var anyClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// must is a call that has to be answered with success, or one of the codes.
func (s *server) must(t *testing.T, method, path, body string, or ...int) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+anyToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := anyClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, s.output())
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode >= 300 && !slices.Contains(or, res.StatusCode) {
		t.Errorf("%s %s: %s %s", method, path, res.Status, text)
	}
	var out map[string]any
	_ = json.Unmarshal(text, &out)
	return out
}

// prepare sees that there is something of each kind.
func (w *anyWorld) prepare(t *testing.T, s *server) {
	t.Helper()
	if w.rnd.IntN(4) == 0 {
		s.must(t, "POST", "/reset?all=true", "", 400, 409, 422)
	}
	for _, name := range []string{"s1", "s2", "s3"} {
		s.must(t, "DELETE", "/sessions/"+name+"?forget=true", "", 404, 409, 422)
		s.must(t, "POST", "/sessions", `{"id":"`+name+`","options":{"max_retries":100`+[]string{"", `,"task_max_time":"1s"`}[w.rnd.IntN(2)]+`}}`, 409)
	}
	s.must(t, "PUT", "/inboxes/i1", `{"group":{"header":"X-CORRELATE-ID"}}`, 409, 422)
	s.must(t, "PUT", "/budgets/b1", `{"allocation":3,"strategy":{"type":"while_in_flight"}}`)
	for _, name := range []string{"e1", "e2"} {
		s.must(t, "POST", "/engines", `{"id":"`+name+`","slots":4}`)
	}
}

// reachable wants every job that there is to be shown by itself, and everything
// to go when it is deleted.
func (w *anyWorld) reachable(t *testing.T, s *server) {
	t.Helper()
	from, seen := "", 0
	for {
		page := s.must(t, "GET", "/jobs?limit=200"+from, "")
		list, _ := page["jobs"].([]any)
		for _, v := range list {
			j, _ := v.(map[string]any)
			id, _ := j["id"].(string)
			s.must(t, "GET", "/jobs/"+id, "", 404) // it may leave meanwhile
			if j["status"] != "completed" && j["status"] != "dead" {
				s.must(t, "GET", "/jobs/"+id+"/explain", "", 404)
			}
			seen, from = seen+1, "&from="+id
		}
		if len(list) < 200 {
			break
		}
	}
	s.must(t, "DELETE", "/jobs?all=true", "")
	if left := s.must(t, "GET", "/jobs/count", ""); fmt.Sprint(left["count"]) != "0" {
		t.Errorf("all was deleted, and left is %v", left)
	}
	t.Logf("%d jobs were there in the end", seen)
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.saysNoFault(t)
}
