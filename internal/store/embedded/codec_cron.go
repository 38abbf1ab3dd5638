package embedded

import (
	"encoding/json"

	"github.com/reprisehq/reprise/internal/job"
)

// cronEntry is the stored form of an entry. Its template is in the layout of
// jobs, so what a job can hold an entry can.
type cronEntry struct {
	job.CronEntry
	Template []byte
}

func appendCronEntry(b []byte, e *job.CronEntry) ([]byte, error) {
	stored := cronEntry{CronEntry: *e}
	if e.Job != nil {
		stored.Job, stored.Template = nil, appendJob(nil, e.Job)
	}
	text, err := json.Marshal(stored)
	return append(b, text...), err
}

func decodeCronEntry(b []byte) (*job.CronEntry, bool) {
	var stored cronEntry
	if json.Unmarshal(b, &stored) != nil || stored.Job != nil || stored.Missed != nil && !stored.Missed.Valid() || stored.Place > job.PlaceBack {
		return nil, false
	}
	if stored.Template != nil {
		j, err := decodeJob(job.ID{}, stored.Template, nil)
		if err != nil {
			return nil, false
		}
		stored.Job = j
	}
	return &stored.CronEntry, true
}
