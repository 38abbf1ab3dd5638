package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// TestTheProtocolIsAsDocumented runs every example of docs/protocol: each block
// marked http is a request and the reply it must get. Each section of level
// two has a server of its own, in which the examples follow each other and
// streams stay open.
//
// Request and reply are held to GET /openapi.json too (contract_test.go, described_test.go).
//
// A reply is compared whole: status, the headers that are given, and the body
// as JSON, or line by line for a stream; only where "..." ends an object or a
// list it may have more than the example shows. What cannot be known before stands in
// angle brackets: <time> is a time, <window> a window of rates, <rate> a rate, <id...> an id and <token...> a lease
// token, <tick> a time as text, <key...> the id of a token of the API and <secret...> its text, <worker...> the secret of a worker, each of which has the same value wherever its name stands again. A
// block that follows the line "<!-- eventually -->" is about what the clock
// does, so it is asked again until it holds.
func TestTheProtocolIsAsDocumented(t *testing.T) {
	pages, err := filepath.Glob("../../docs/protocol/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range strings.Split(string(text), "\n## ") {
			list := exchanges(t, section)
			examples += len(list)
			name, _, _ := strings.Cut(section, "\n")
			t.Run(strings.TrimSuffix(filepath.Base(page), ".md")+"/"+name, func(t *testing.T) {
				p := &protocol{api: start(t, httpapi.Options{Version: "0.1.0"}), bound: map[string]string{}}
				p.client.Transport = watched{p.client.Transport.(watched).RoundTripper, t, true}
				for _, x := range list {
					p.check(x)
				}
			})
		}
	}
	if n := described().operations(); n < 40 {
		t.Errorf("only %d calls were held to GET /openapi.json", n)
	}
	if examples < 150 {
		t.Errorf("the pages have only %d examples; are they marked ```http?", examples)
	}
}

// exchange is one example.
type exchange struct {
	text       string
	request    message
	reply      message
	eventually bool
}

type message struct {
	first  string // request line or status line
	header [][2]string
	body   string
}

var block = regexp.MustCompile("(?ms)^(<!-- eventually -->\n+)?```http\n(.*?)^```$")

func exchanges(t *testing.T, section string) (list []exchange) {
	t.Helper()
	for _, found := range block.FindAllStringSubmatch(section, -1) {
		request, reply, ok := strings.Cut(found[2], "\nHTTP/1.1 ")
		if !ok {
			t.Fatalf("an example has no reply:\n%s", found[2])
		}
		list = append(list, exchange{found[2], parse(request), parse(reply), found[1] != ""})
	}
	if marked := strings.Count(section, "```http"); marked != len(list) {
		t.Fatalf("%d of %d examples could be read in %.60q", len(list), marked, section)
	}
	return list
}

func parse(text string) (m message) {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	m.first, m.body = lines[0], strings.TrimSpace(body)
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		m.header = append(m.header, [2]string{name, value})
	}
	return m
}

// protocol runs the examples of one section.
type protocol struct {
	*api
	bound map[string]string // placeholders that have a value
}

func (p *protocol) check(x exchange) {
	p.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; {
		why := p.exchange(x)
		if why == "" {
			return
		}
		if !x.eventually || time.Now().After(deadline) {
			p.t.Fatalf("%s\n\nin the example\n\n%s", why, x.text)
		}
	}
}

// exchange says how the server differs from an example; "" = not at all.
func (p *protocol) exchange(x exchange) string {
	method, path, _ := strings.Cut(p.fill(x.request.first), " ")
	var header []string
	for _, h := range x.request.header {
		header = append(header, h[0], p.fill(h[1]))
	}
	r := p.request(method, path, p.fill(x.request.body), header...)
	ctx, cancel := context.WithCancel(r.Context())
	p.t.Cleanup(cancel)
	resp, err := p.client.Do(r.WithContext(ctx))
	if err != nil {
		return err.Error()
	}
	defer func() {
		if resp.Header.Get("Content-Type") != "application/x-ndjson" { // streams stay open
			_ = resp.Body.Close()
		}
	}()
	if want := x.reply.first; resp.Status != want {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Sprintf("got %s %s", resp.Status, text)
	}
	for _, h := range x.reply.header {
		if got := resp.Header.Get(h[0]); got != p.fill(h[1]) {
			return fmt.Sprintf("the header %s is %q", h[0], got)
		}
	}
	if resp.Header.Get("Content-Type") == "application/x-ndjson" && method == http.MethodGet {
		p.t.Cleanup(func() { _ = resp.Body.Close() })
		return p.compareLines(resp, x.reply.body)
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return p.compare(x.reply.body, string(got))
}

// compareLines reads as many jobs as the example has, and leaves the stream open.
func (p *protocol) compareLines(resp *http.Response, want string) string {
	lines := bufio.NewReader(resp.Body)
	for _, line := range strings.Split(want, "\n") {
		for got := ""; line != ""; {
			var err error
			if got, err = lines.ReadString('\n'); err != nil {
				return fmt.Sprintf("instead of %s: %v", line, err)
			}
			if got != "\n" { // a heartbeat
				if why := p.compare(line, got); why != "" {
					return why
				}
				if err := described().checkItem(resp.Request, "application/x-ndjson", []byte(got)); err != nil {
					return "GET /openapi.json tells something else: " + err.Error()
				}
				break
			}
		}
	}
	return ""
}

var (
	placeholder = regexp.MustCompile(`<[a-z][a-z0-9-]*>`)
	moreEntries = regexp.MustCompile(`\.\.\.(\s*\])`) // what an example leaves out
	moreMembers = regexp.MustCompile(`\.\.\.(\s*\})`)
	unquoted    = regexp.MustCompile(`([:\[,]\s*)(<[a-z][a-z0-9-]*>)`)
	kinds       = map[string]*regexp.Regexp{
		"id": regexp.MustCompile(`^[0-9a-z]{25}$`), "token": regexp.MustCompile(`^[0-9a-f]{40}$`),
		"tick": regexp.MustCompile(`^[0-9]{13}$`),
		"key":  regexp.MustCompile(`^[0-9a-v]{10}$`), "secret": regexp.MustCompile(`^rp_[0-9a-v]{10}_[0-9a-v]{52}$`), "worker": regexp.MustCompile(`^[0-9a-f]{48}$`),
		"text": regexp.MustCompile(` until 2\d{3}-.* \(.*\)`),
	}
)

// fill puts the values of placeholders in.
func (p *protocol) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := p.bound[name]; ok {
			return value
		}
		return name
	})
}

func (p *protocol) compare(want, got string) string {
	if want == "" || got == "" {
		if want == strings.TrimSpace(got) {
			return ""
		}
		return fmt.Sprintf("got the body %q", got)
	}
	var w, g any
	want = moreMembers.ReplaceAllString(moreEntries.ReplaceAllString(want, `"..."$1`), `"...": 0$1`)
	if err := decode(unquoted.ReplaceAllString(p.fill(want), `$1"$2"`), &w); err != nil {
		return fmt.Sprintf("the example is no JSON: %v", err)
	}
	if err := decode(got, &g); err != nil {
		return fmt.Sprintf("the answer is no JSON: %v: %s", err, got)
	}
	if why := p.differ("the body", w, g); why != "" {
		return why + "\ngot " + got
	}
	return ""
}

func decode(text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// differ says where two values differ, and gives placeholders their values.
func (p *protocol) differ(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		if w["..."] != nil {
			w, g = maps.Clone(w), maps.Clone(g)
			delete(w, "...")
			maps.DeleteFunc(g, func(name string, _ any) bool { _, shown := w[name]; return !shown })
		}
		for _, name := range slices.Sorted(keys(w, g)) {
			if why := p.differ(at+"."+name, w[name], g[name]); why != "" {
				return why
			}
		}
		if len(w) != len(g) {
			return fmt.Sprintf("%s has %d members, not %d", at, len(g), len(w))
		}
		return ""
	case []any:
		g, _ := got.([]any)
		if n := len(w) - 1; n >= 0 && w[n] == "..." {
			w, g = w[:n], g[:min(n, len(g))]
		}
		for i := range min(len(w), len(g)) {
			if why := p.differ(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); why != "" {
				return why
			}
		}
		if len(w) != len(g) {
			return fmt.Sprintf("%s has %d entries, not %d", at, len(g), len(w))
		}
		return ""
	case string:
		if placeholder.FindString(w) == w && w != "" {
			return p.bind(at, w, got)
		}
	}
	if want != got {
		return fmt.Sprintf("%s is %v, not %v", at, got, want)
	}
	return ""
}

func keys(a, b map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name := range a {
			if !yield(name) {
				return
			}
		}
		for name := range b {
			if _, both := a[name]; !both && !yield(name) {
				return
			}
		}
	}
}

// bind checks a value whose kind is known, and remembers it by its name.
func (p *protocol) bind(at, name string, got any) string {
	kind, _, _ := strings.Cut(strings.Trim(name, "<>"), "-")
	if kind == "time" {
		n, _ := got.(json.Number)
		if ms, err := n.Int64(); err != nil || time.Since(time.UnixMilli(ms)).Abs() > 31*24*time.Hour {
			return fmt.Sprintf("%s is %v, which is no time near now", at, got)
		}
		return ""
	}
	if kind == "window" || kind == "rate" {
		n, _ := got.(json.Number)
		if v, err := n.Float64(); err != nil || v < 0 || kind == "window" && (v < 1000 || v > 60_000) {
			return fmt.Sprintf("%s is %v, which is no %s", at, got, kind)
		}
		return ""
	}
	text, _ := got.(string)
	if shape := kinds[kind]; shape == nil || !shape.MatchString(text) {
		return fmt.Sprintf("%s is %v, which is no %s", at, got, kind)
	}
	if was, ok := p.bound[name]; ok && was != text {
		return fmt.Sprintf("%s is %s, but %s is %s already", at, text, name, was)
	}
	p.bound[name] = text
	return ""
}
