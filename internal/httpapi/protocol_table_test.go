package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

var tableMark = regexp.MustCompile(`(?m)^<!-- (members (\w+)|codes) -->\n(\n?\|.*\n(\|.*\n)*)?`)

// The tables below "<!-- members X -->" in docs/protocol are the schemas X of
// GET /openapi.json, that below "<!-- codes -->" is wire.Codes.
func TestTheTablesOfTheProtocol(t *testing.T) {
	pages, err := filepath.Glob("../../docs/protocol/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		want := tableMark.ReplaceAllStringFunc(string(text), func(place string) string {
			tables++
			mark, _, _ := strings.Cut(place, "\n")
			found := tableMark.FindStringSubmatch(place)
			if found[2] == "" {
				return mark + "\n" + codesTable()
			}
			return mark + "\n" + membersTable(t, found[2])
		})
		switch {
		case want == string(text):
		case !*updateAccess:
			t.Errorf("%s has other tables than the description; run: go test ./internal/httpapi -run TablesOfTheProtocol -update", page)
		default:
			if err := os.WriteFile(page, []byte(want), 0o644); err != nil { //nolint:gosec // documentation
				t.Fatal(err)
			}
		}
	}
	if tables < 10 {
		t.Errorf("there are only %d tables: the pattern fits no more", tables)
	}
}

func codesTable() string {
	var b strings.Builder
	b.WriteString("| Status | Code | Meaning | What to do | Repeat |\n| --- | --- | --- | --- | --- |\n")
	list := slices.Clone(wire.Codes)
	slices.SortStableFunc(list, func(a, b wire.Code) int { return a.Status - b.Status })
	for _, c := range list {
		code, again := "`"+c.Code+"`", ""
		if c.Status == http.StatusMethodNotAllowed {
			code = "" // it has no body
		}
		if c.Again {
			again = "yes"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", c.Status, code, c.Meaning, c.Advice, again)
	}
	return b.String()
}

// membersTable has what is required first.
func membersTable(t *testing.T, name string) string {
	t.Helper()
	schema := member(described().doc, "components", "schemas", name)
	members := maps.Clone(member(schema, "properties"))
	parts, _ := schema["allOf"].([]any)
	for _, part := range parts {
		schema = target(part.(map[string]any)) // which has what is required
		maps.Copy(members, member(schema, "properties"))
	}
	if len(members) == 0 {
		t.Errorf("there is no schema %s with members", name)
	}
	required := map[string]bool{}
	list, _ := schema["required"].([]any)
	for _, r := range list {
		required[r.(string)] = true
	}
	rank := func(name string) string {
		if required[name] {
			return " " + name
		}
		return name
	}
	var b strings.Builder
	b.WriteString("| Member | Value | Meaning |\n| --- | --- | --- |\n")
	for _, m := range slices.SortedFunc(maps.Keys(members), func(a, b string) int { return strings.Compare(rank(a), rank(b)) }) {
		v := members[m].(map[string]any)
		text, _ := v["description"].(string)
		if text == "" {
			text, _ = target(v)["description"].(string)
		}
		if text == "" {
			t.Errorf("%s.%s has no description", name, m)
		}
		if required[m] {
			text = "Required. " + text
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m, valueOf(v), strings.TrimSpace(strings.ReplaceAll(text, "|", `\|`)))
	}
	return b.String()
}

// target is the schema behind a reference.
func target(v map[string]any) map[string]any {
	ref, is := v["$ref"].(string)
	if !is {
		return v
	}
	m, _ := described().at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	return m
}

// valueOf says in words what a value may be.
func valueOf(v map[string]any) string {
	ref, _ := v["$ref"].(string)
	switch path := strings.Split(ref, "/"); path[len(path)-1] {
	case "Time":
		return "time"
	case "Millis":
		return "milliseconds"
	case "Span":
		return "span"
	case "Name":
		return "name"
	}
	v = target(v)
	if list, ok := v["enum"].([]any); ok {
		words := make([]string, len(list))
		for i := range list {
			words[i] = "`" + list[i].(string) + "`"
		}
		return strings.Join(words, ", ")
	}
	text := "any JSON"
	switch v["type"] {
	case "string":
		text = "text" + length(v["minLength"], v["maxLength"])
	case "integer", "number":
		text = "number"
		low, least := v["minimum"]
		high, most := v["maximum"]
		if least && most {
			text = fmt.Sprintf("%v to %v", low, high)
		}
	case "boolean":
		text = "true, false"
	case "array":
		items, _ := v["items"].(map[string]any)
		text = "list"
		if of := valueOf(items); of != "any JSON" && of != "object" {
			text += " of " + plural.Replace(of)
		}
		text += length(nil, v["maxItems"])
	case "object":
		text = "object"
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list, ok := v[word].([]any); ok {
			var kinds []string
			for _, part := range list {
				if kind := valueOf(part.(map[string]any)); !slices.Contains(kinds, kind) {
					kinds = append(kinds, kind)
				}
			}
			text = strings.Join(kinds, " or ")
		}
	}
	if d, ok := v["default"]; ok {
		if s, ok := d.(string); ok {
			d = strconv.Quote(s)
		}
		text += fmt.Sprintf("; default %v", d)
	}
	return text
}

func length(least, most any) string {
	switch {
	case most == nil:
		return ""
	case least == nil || least == json.Number("0"):
		return fmt.Sprintf(", up to %v", most)
	}
	return fmt.Sprintf(", %v to %v", least, most)
}

var plural = strings.NewReplacer("text", "texts", "name", "names", "number", "numbers")
