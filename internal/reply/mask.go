package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"slices"
	"strings"
)

// Masks replaces secrets, also as JSON and HTML write them, and what stands behind
// the scheme of one such as "Bearer x". It is used before a text is cut: the
// beginning of a secret would not be found.
func Masks(secrets []string) *strings.Replacer {
	const least = 4 // bytes; a shorter one would be found everywhere
	for _, s := range secrets {
		if _, credentials, has := strings.Cut(s, " "); has {
			secrets = append(secrets[:len(secrets):len(secrets)], credentials)
		}
	}
	var all []string
	for _, s := range secrets {
		if len(s) < least {
			continue
		}
		var plain bytes.Buffer
		e := json.NewEncoder(&plain)
		e.SetEscapeHTML(false)
		escaped, err := json.Marshal(s)
		if err = errors.Join(err, e.Encode(s)); err != nil {
			continue // a text is never refused
		}
		inJSON := unquoted(bytes.TrimSpace(plain.Bytes()))
		all = append(all, s, inJSON, strings.ReplaceAll(inJSON, "/", `\/`), unquoted(escaped), html.EscapeString(s))
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // one that holds another goes first
	pairs := make([]string, 0, 2*len(all))
	for _, s := range slices.Compact(all) {
		pairs = append(pairs, s, "********")
	}
	return strings.NewReplacer(pairs...)
}

func unquoted(text []byte) string { return string(text[1 : len(text)-1]) }
