package inbox

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/spell"
)

// places are the settings with where they stand.
var places = []string{
	"group.header", "group.json", "group.jq", "sort",
	"deliver.http.url", "deliver.http.send", "deliver.http.headers", "deliver.http.timeout", "deliver.http.concurrent",
	"batch.mode", "batch.query.pollInitialDelay", "batch.query.pollInterval", "batch.cleanup.pollInitialDelay", "batch.cleanup.pollInterval",
	"persistence.messageMaxRetries", "persistence.messageFetchPageSize", "persistence.messageBatchSize",
	"retry.retryMaxBackoffMinutes", "retry.retryBackoffBase", "retry.capApplies",
	"persistence.retryMaxBackoffMinutes", "persistence.retryBackoffBase",
	"message.timeToLive", "onExhausted",
}

// below are the keys that stand directly below a path, "" = at the top.
func below(path string) (keys []string) {
	if path != "" {
		path += "."
	}
	for _, place := range places {
		if rest, inside := strings.CutPrefix(place, path); inside {
			key, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// relaxed writes the keys of a document as they are written here. In the
// library, whose settings Spring binds, pollInterval, poll-interval, poll_interval
// and POLLINTERVAL are one key. What is no document stays as it is.
func relaxed(body []byte) []byte {
	var out bytes.Buffer
	from, to := jsontext.NewDecoder(bytes.NewReader(body)), jsontext.NewEncoder(&out)
	var path []string // of the object we are in, as it is written here
	for from.PeekKind() != jsontext.KindInvalid {
		token, err := from.ReadToken()
		if err != nil {
			return body
		}
		depth := from.StackDepth()
		kind, n := from.StackIndex(depth)
		if kind == jsontext.KindBeginObject && n%2 == 1 { // a name
			path = append(path[:min(depth-1, len(path))], token.String())
			for _, key := range below(strings.Join(path[:len(path)-1], ".")) {
				if spell.Fold(key) == spell.Fold(path[len(path)-1]) {
					path[len(path)-1] = key
				}
			}
			token = jsontext.String(path[len(path)-1])
		}
		if to.WriteToken(token) != nil { // a key in two spellings
			return body
		}
	}
	if _, err := from.ReadToken(); !errors.Is(err, io.EOF) { // it ends early, or what follows is no JSON
		return body
	}
	return out.Bytes()
}

// noSetting says what was meant by a key that there is not, where it stands.
func noSetting(field string) string {
	name := strings.TrimPrefix(field, "correlate.")
	heading, leaf := "", name
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		heading, leaf = name[:at], name[at+1:]
	}
	const unknown = "is not known here"
	for _, n := range []string{name, leaf} {
		if o, ok := spell.Find("correlate", n); ok {
			return strings.TrimSpace(o.Answer(""))
		}
	}
	if key := spell.Meant(leaf, below(heading)); key != "" && spell.Fold(key) != spell.Fold(leaf) {
		return unknown + "; did you mean " + key + "?"
	}
	var belongs []string
	for _, place := range places {
		for end := range len(place) + 1 { // the place and the sections above it
			if end < len(place) && place[end] != '.' {
				continue
			}
			above := place[:end]
			same := spell.Fold(above[strings.LastIndexByte(above, '.')+1:]) == spell.Fold(leaf) || flat(above) == flat(name)
			if same && !slices.Contains(belongs, above) {
				belongs = append(belongs, above)
			}
		}
	}
	if len(belongs) > 0 {
		return unknown + "; write it as " + strings.Join(belongs, " or ")
	}
	if place := spell.Meant(leaf, places); place != "" {
		return unknown + "; did you mean " + place + "?"
	}
	return unknown + "; there are " + strings.Join(below(heading), ", ")
}

// flat is a path as one word, as an environment variable has it.
func flat(path string) string { return strings.ReplaceAll(spell.Fold(path), ".", "") }

// Place is the setting or the section that a name is about which stands outside of
// an inbox, "" if it is about none: CORRELATE_BATCH_QUERY_POLLINTERVAL and
// correlate.batch.query.poll-interval are batch.query.pollInterval.
func Place(name string) string {
	name = strings.TrimPrefix(flat(name), "correlate")
	for _, place := range places {
		for end := range len(place) + 1 {
			if (end == len(place) || place[end] == '.') && flat(place[:end]) == name {
				return place[:end]
			}
		}
	}
	return ""
}
