package rule

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestALateOKCountsAfterAnEndingThatNobodyDecided(t *testing.T) { // core.md section 4, I2
	const counts = "lapse disconnect restart turn undelivered "
	for how := range job.Endings {
		e := Effect{}
		j := &job.Job{State: job.Leased, Leases: []job.Lease{{Token: job.Token{1}}}}
		end(j, 0, how, &e, true)
		j.State = job.Ready
		_, err := late(View{Job: j, Queue: &job.Queue{}, Server: &Server{}}, Command{Verb: SettleOK, Token: job.Token{1}})
		if want := strings.Contains(counts, how.String()+" "); (err == nil) != want && how != job.ByOK {
			t.Errorf("after %s: %v", how, err)
		}
	}
}
