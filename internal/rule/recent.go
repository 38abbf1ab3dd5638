package rule

import "github.com/reprisehq/reprise/internal/job"

// RetainRecent, as the server's retention of finished jobs, keeps the first few
// of each queue for an hour and some more for a minute, so that who tries the
// server sees the job that succeeded, while a busy queue pays next to nothing.
// It applies where neither job nor queue says how long.
const RetainRecent job.Millis = -2

// What RetainRecent keeps.
const (
	RecentHour   = 50       // finished jobs a queue keeps for an hour
	RecentMinute = 100      // those beyond are kept for a minute, up to so many in all
	RecentBytes  = 64 << 10 // larger payloads and results leave at once
	RecentQueues = 1000     // with more queues than these, nothing is kept
)

// recent is how long the finished job is kept under RetainRecent. A job whose
// unique key lasts as long as the job is not: others wait for that key.
func recent(v View, j *job.Job, result *job.Result) job.Millis {
	size := int64(j.PayloadSize)
	if result != nil {
		size += int64(result.Size)
	}
	if size > RecentBytes || holdsKey(j) {
		return 0
	}
	kept, queues := int64(0), 0
	if v.Kept != nil {
		kept, queues = v.Kept(j.Queue)
	}
	switch {
	case queues > RecentQueues:
		return 0
	case kept < RecentHour:
		return job.Hour
	case kept < RecentMinute:
		return job.Minute
	}
	return 0
}

// holdsKey reports whether the job has a unique key for as long as there is the job.
func holdsKey(j *job.Job) bool {
	return j.Extras != nil && j.Extras.Unique != nil && j.Extras.Unique.While == job.WhileExists
}
