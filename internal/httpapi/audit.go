package httpapi

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
)

// changeMax bounds the bytes of a value in the audit log.
const changeMax = 1 << 10

// QueueChanges names for the audit log which settings of a queue differ, by
// their members in PATCH /queues/{name}, but for `paused`. It is an
// engine.QueueChanges.
func QueueChanges(from, to *job.Queue) (list []job.Change) {
	old, set := members(from), members(to)
	delete(old, "paused")
	delete(set, "paused")
	names := map[string]bool{}
	for _, m := range []map[string]jsontext.Value{old, set} {
		for name := range m {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(old[name], set[name]) {
			list = append(list, job.Change{Field: name, From: valueOf(old[name]), To: valueOf(set[name])})
		}
	}
	return list
}

func members(q *job.Queue) map[string]jsontext.Value {
	var m map[string]jsontext.Value
	if err := json.Unmarshal(append(jobs.AppendQueue([]byte("{"), q), '}'), &m); err != nil {
		panic(err) // settings that were accepted can be told
	}
	return m
}

func valueOf(v jsontext.Value) string {
	switch {
	case v == nil:
		return "null"
	case len(v) <= changeMax:
		return string(v)
	}
	text, err := json.Marshal(strings.ToValidUTF8(string(v[:changeMax]), "") + "…")
	if err != nil {
		panic(err) // it is UTF-8
	}
	return string(text)
}
