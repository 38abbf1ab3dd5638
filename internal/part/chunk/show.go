package chunk

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

// show is a chunk as JSON, for people and searches: an array of its records, each with its
// time as `date`. Of one that is damaged the records before the damage are shown.
func show(j *job.Job, payload []byte) []byte {
	if j.Door != job.DoorPipeline {
		return payload
	}
	w := record.NewJSONWriter(record.Array, "date", record.ISO8601, false)
	text, _, _ := w.AppendChunk(make([]byte, 0, len(payload)+len(payload)/8), payload)
	return text
}
