package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// names tries settings of the originals, in every spelling and at every place.
type names struct {
	t                  *testing.T
	url, dir           string
	accepted, answered int
}

// Who comes from an original finds its settings under their own names: each is
// accepted, or answered with what to write here.
func TestEverySettingOfTheOriginalsIsAcceptedOrAnswered(t *testing.T) {
	text, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{t: t, url: serverURL(t), dir: t.TempDir()}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		col := strings.SplitN(line, "|", 4)
		for i := range col {
			col[i] = strings.TrimSpace(col[i])
		}
		list, value, want := strings.Split(col[3], "; "), col[1], col[2]
		switch col[0] {
		case "grid":
			for _, name := range list {
				n.grid(name, value, want)
			}
		case "inbox":
			n.inbox(list[0], value, want)
		case "elsewhere":
			for _, path := range list {
				n.elsewhere(path, value, want)
			}
		case "zizq":
			n.zizq(list[0], list[1], list[2], value, want)
		case "ignored":
			for _, name := range list {
				n.check(true, name, "", "config", "--check", "--"+name+"="+value)
				n.variable("ZIZQ_", name, value, "")
			}
		default:
			t.Errorf("%s: what is this?", line)
		}
	}
	t.Logf("%d spellings of settings of the originals: %d are accepted, %d answered with ours", n.accepted+n.answered, n.accepted, n.answered)
}

// forms are the ways to write a name.
func forms(name string) []string {
	var words []string
	for i, r := range name {
		upper := unicode.IsUpper(r) && i > 0 && unicode.IsLower(rune(name[i-1]))
		switch {
		case r == ' ' || r == '_' || r == '-':
			words = append(words, "")
			continue
		case upper, words == nil:
			words = append(words, "")
		}
		words[len(words)-1] += strings.ToLower(string(r))
	}
	var camel, title strings.Builder
	for i, w := range words {
		capital := strings.ToUpper(w[:1]) + w[1:]
		title.WriteString(strings.Repeat(" ", min(i, 1)) + capital)
		if i == 0 {
			capital = w
		}
		camel.WriteString(capital)
	}
	list := []string{name, strings.ToUpper(strings.Join(words, "_")), camel.String(), strings.Join(words, "-"), strings.Join(words, "_"), title.String()}
	slices.Sort(list)
	return slices.Compact(list)
}

// judge counts one spelling at one place, and fails unless it was accepted, or
// answered with what is wanted.
func (n *names) judge(ok, accepted bool, what, told, want string) {
	n.t.Helper()
	if ok != accepted || !strings.Contains(told, want) || strings.Contains(told, "9223372036854775807") {
		n.t.Errorf("%s: accepted %v, want %v with %q: %s", what, ok, accepted, want, told)
	}
	if ok {
		n.accepted++
	} else {
		n.answered++
	}
}

func (n *names) check(accepted bool, what, want string, args ...string) {
	n.t.Helper()
	out, stderr, code := cli(n.t, "1\n", args...)
	n.judge(code == 0, accepted, what+" by "+strings.Join(args, " "), out+stderr, want)
}

func (n *names) file(accepted bool, content map[string]any, want string) {
	n.t.Helper()
	text, err := json.Marshal(content)
	name := filepath.Join(n.dir, "reprise.yaml")
	if err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.check(accepted, string(text), want, "config", "-c", name, map[bool]string{true: "--guard", false: "--check"}[accepted])
}

func (n *names) call(accepted bool, method, path string, body any, want string) {
	n.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		n.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(n.t.Context(), method, n.url+path, bytes.NewReader(text))
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	told, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		n.t.Fatal(err)
	}
	n.judge(answer.StatusCode < 300, accepted, method+" "+path+" "+string(text), string(told), want)
}

// variable tries an environment variable; said is what the command notes of it, ""
// = it is a setting.
func (n *names) variable(prefix, name, value, said string) {
	n.t.Helper()
	key := prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if err := os.Setenv(key, value); err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = os.Unsetenv(key) }() // it is gone before the next one
	out, stderr, code := cli(n.t, "", "config")
	n.judge(code == 0 && !strings.Contains(stderr, key), said == "", key, out+stderr, said)
}

// literal is a value as JSON has it, nested below a path.
func literal(path, value string) map[string]any {
	var v any = value
	if json.Valid([]byte(value)) {
		v = json.RawMessage(value)
	}
	keys := strings.Split(path, ".")
	for _, key := range slices.Backward(keys) {
		v = map[string]any{key: v}
	}
	return v.(map[string]any)
}

func (n *names) grid(name, value, want string) {
	ours, here, has := strings.Cut(want, ": ")
	if !has {
		ours = ""
	}
	for i, form := range forms(name) {
		accepted, want := form == ours, want
		switch {
		case !accepted:
		case here == value:
			want = ""
		case strings.Trim(value, "0123456789") != "": // our name with a word of theirs
			accepted, want = false, here
		default: // with a number in their unit
			accepted, want = false, "write "+value+"ms or "+value+"s"
		}
		n.file(accepted, map[string]any{"grid": map[string]any{"defaults": literal(form, value)}}, want)
		n.call(accepted, "POST", "/sessions", map[string]any{"options": literal(form, value)}, want)
		if i == 0 {
			n.file(false, map[string]any{"grid": literal(form, value)}, strings.TrimPrefix(ours, "grid."))
			n.check(accepted, form, want, "grid", "submit", "--url", n.url, "-O", form+"="+value)
		}
	}
}

// relaxed are the ways in which Spring reads a path: each key in any form.
func relaxed(path string) (list []string) {
	keys := strings.Split(path, ".")
	for i := range forms("anyName") {
		out := make([]string, len(keys))
		for k, key := range keys {
			list := forms(key)
			out[k] = list[min(i, len(list)-1)]
		}
		list = append(list, strings.Join(out, "."))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

const namesInbox = "named-by-spring"

func (n *names) inbox(path, value, want string) {
	place, shown, moved := strings.Cut(want, "=")
	if !moved {
		place, shown = path, want
	}
	settings := func(form string) map[string]any {
		s := literal(form, value)
		s["group"] = map[string]any{"json": ".id"}
		return s
	}
	for _, form := range relaxed(path) {
		n.file(true, map[string]any{"inboxes": map[string]any{namesInbox: settings(form)}}, "")
		n.call(true, "PUT", "/inboxes/"+namesInbox, settings(form), "")
		file := filepath.Join(n.dir, "inbox.json")
		text, err := json.Marshal(settings(form))
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			n.t.Fatal(err)
		}
		n.check(true, form, "", "inbox", "set", namesInbox, "-f", file, "--url", n.url)
		var all any
		if err := json.Unmarshal([]byte(well(n.t, "inbox", "show", namesInbox, "--url", n.url)), &all); err != nil {
			n.t.Fatal(err)
		}
		for key := range strings.SplitSeq(place, ".") {
			object, _ := all.(map[string]any)
			all = object[key]
		}
		if got, _ := json.Marshal(all); strings.Trim(string(got), `"`) != shown {
			n.t.Errorf("%s: %s is shown as %s", form, place, got)
		}
		well(n.t, "inbox", "remove", namesInbox, "--url", n.url)
	}
	n.variable("CORRELATE_", strings.ReplaceAll(path, ".", "_"), value, "inboxes.NAME."+path)
	n.file(false, map[string]any{"correlate": literal(path, value)}, "inboxes.NAME")
}

func (n *names) elsewhere(path, value, want string) {
	for _, form := range relaxed(path) {
		s := literal(form, value)
		if s["group"] = map[string]any{"json": ".id"}; len(s) == 1 {
			continue
		}
		n.file(false, map[string]any{"inboxes": map[string]any{namesInbox: s}}, want)
		n.call(false, "PUT", "/inboxes/"+namesInbox, s, want)
	}
}

func (n *names) zizq(flag, path, member, value, want string) {
	three := map[string]string{"default-backoff-base": "1s", "default-backoff-exponent": "1", "default-backoff-jitter": "0"}
	_, backoff := three[flag]
	delete(three, flag)
	args := []string{"config"}
	if backoff {
		for name, value := range three {
			args = append(args, "--"+name, value)
		}
	}
	n.check(true, flag, want, append(args, "--"+flag, value)...)
	n.check(true, flag, want, append(args, "--"+flag+"="+value)...)
	if backoff {
		for name, value := range three {
			n.t.Setenv("ZIZQ_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_")), value)
		}
	}
	n.variable("ZIZQ_", flag, value, "")
	n.variable("REPRISE_", flag, value, "")
	content := literal(path, value)
	if backoff {
		content = map[string]any{"retry": map[string]any{"curve": map[string]any{"kind": "polynomial", path[strings.LastIndexByte(path, '.')+1:]: content["retry"].(map[string]any)["curve"].(map[string]any)[path[strings.LastIndexByte(path, '.')+1:]]}}}
	}
	n.file(true, content, "")
	for name := range three {
		_ = os.Unsetenv("ZIZQ_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	}
	if leaf := path[strings.LastIndexByte(path, '.')+1:]; flag != leaf {
		for _, form := range forms(flag) {
			n.file(false, literal(form, value), path)
			n.check(false, form+"x", "did you mean --"+flag+"?", "config", "--"+flag+"x="+value)
		}
	}
	if member != "-" {
		body := literal(member, value)
		if b, ok := body["backoff"].(map[string]any); ok {
			for _, name := range []string{"exponent", "base_ms", "jitter_ms"} {
				if b[name] == nil {
					b[name] = 1
				}
			}
		}
		body["queue"], body["type"], body["payload"] = "names", "t", nil
		n.call(true, "POST", "/jobs", body, "")
	}
}
