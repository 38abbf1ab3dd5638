package embedded

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// A look-up on disk costs about as much as fifty neighbours of what was looked
// up. Who takes a few jobs at a time off a line that is not in memory, as the
// slots of engines do, therefore makes those behind them hot as well, with
// payloads that are small. So does who takes turns with all their members: those
// of a group lie far from each other, and beside those of the next groups.
const (
	aheadMax   = 256     // jobs
	aheadBytes = 1 << 10 // of a payload; larger ones are read by who delivers them
)

// readAhead loads jobs that stand in line, some of which are not hot, and keeps
// them hot. The caller is the writer.
func (a *access) readAhead(ids []job.ID) error {
	h := a.s.hot
	cold, refs := make([]job.ID, 0, len(ids)), make([]job.ID, 0, len(ids))
	for _, id := range ids {
		if _, ok := h.jobs.get(id); !ok {
			cold = append(cold, id)
		}
	}
	err := a.h.seekEach(keyJob, cold, func(i int, value []byte) error {
		if value == nil {
			return corrupt("job %s is indexed but not stored", cold[i])
		}
		j, err := decodeJob(cold[i], value, a.s.names)
		if err != nil {
			return err
		}
		h.keep(j, nil)
		h.jobOrder.push(j.ID)
		if _, ok := h.bodies.get(j.Payload); !ok && j.PayloadSize <= aheadBytes && !j.Payload.IsZero() {
			refs = append(refs, j.Payload)
		}
		return nil
	})
	if err != nil || len(refs) == 0 {
		return err
	}
	err = a.h.seekEach(keyPayload, refs, func(i int, value []byte) error {
		if value != nil {
			h.keepBody(refs[i], append([]byte{}, value...))
		}
		return nil
	})
	if a.h.unreadable(err) {
		return nil // who delivers it finds out
	}
	return err
}

// ahead is how many jobs are read together off lines that are not hot. With very
// many queues they would push each other out before they are taken.
func (s *Store) ahead() int {
	return min(aheadMax, hotJobsMax/2/max(len(s.index.queues), 1))
}

// coldMembers are the members of turns that are not hot: of each head's group the
// first so many that want a holder. Heads that are not hot are passed by.
func (a *access) coldMembers(heads []job.ID, each int) (cold []job.ID) {
	for _, id := range heads {
		head, ok := a.s.hot.jobs.get(id)
		if !ok || head.Group == "" {
			continue
		}
		for _, id := range a.wanting(head.Queue, head.Group, nil, each) {
			if _, ok := a.s.hot.jobs.get(id); !ok {
				cold = append(cold, id)
			}
			if len(cold) == a.s.ahead() {
				return cold
			}
		}
	}
	return cold
}

// ready is the foremost jobs in line for a seeker; for the writer they, and those
// behind them, are hot afterwards.
func (a *access) ready(queues []string, s rule.Seeker, n int) ([]job.ID, error) {
	x := a.s.index
	ids := x.ready(queues, s, n, a.writer)
	if !a.writer || len(ids) == 0 || n >= a.s.ahead() {
		return ids, nil
	}
	for _, id := range ids {
		if _, ok := a.s.hot.jobs.get(id); !ok {
			if err := a.readAhead(x.ready(queues, s, a.s.ahead(), true)); err != nil {
				return nil, err
			}
			break
		}
	}
	if s.Members > 1 && len(a.coldMembers(ids, s.Members)) > 0 {
		return ids, a.readAhead(a.coldMembers(x.ready(queues, s, a.s.ahead(), true), s.Members))
	}
	return ids, nil
}
