package rule

import "github.com/reprisehq/reprise/internal/job"

// policy merges what job, queue and server say, the most specific first
// (retry.md section 1).
func policy(v View, j *job.Job) job.Retry { return asked(v, j).Over(v.Server.Retry) }

// asked is the policy without the server's defaults.
func asked(v View, j *job.Job) job.Retry {
	if j.Retry != nil {
		return j.Retry.Over(v.Queue.Retry)
	}
	return v.Queue.Retry
}

func lossLimit(v View, j *job.Job) uint32 {
	p := policy(v, j)
	return p.LossLimitValue()
}
