package audit_test

import (
	"strconv"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/audit"
	"github.com/reprisehq/reprise/internal/store"
)

var ann = job.Actor{Name: "ann", From: "::1"}

// rig is an engine with an audit log.
type rig struct {
	*enginetest.Rig
	log *audit.Log // of this life
}

// scenario has an audit log of that many entries in each half.
func scenario(t *testing.T, f func(*rig), most int) {
	t.Helper()
	r := &rig{}
	enginetest.Scenario(t, func(*enginetest.Rig) { f(r) }, func(in *enginetest.Rig) {
		r.Rig = in
		in.Parts = func() []engine.Part {
			r.log = &audit.Log{Max: most}
			return []engine.Part{r.log}
		}
	})
}

// left counts the entries that are kept.
func (r *rig) left() (n int) {
	r.Helper()
	err := r.View(r.Context(), func(v store.Reader) error {
		rows, err := v.Rows(job.Audits, "", 1<<30)
		n = len(rows)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return n
}

func TestTheAuditLogIsBounded(t *testing.T) { // retry.md section 3
	scenario(t, func(r *rig) {
		const most = 120
		note := func() {
			r.Helper()
			if err := r.log.Note(r.Context(), ann, "noted", "x", 1); err != nil {
				r.Fatal(err)
			}
		}
		for range most {
			note()
		}
		r.Restart(0) // what is there counts
		for range 2 * most {
			note()
		}
		list, err := r.log.List(r.Context(), job.ID{}, 2*most)
		if err != nil || len(list) > most || len(list) < most-100 {
			r.Errorf("%d entries, %v", len(list), err)
		}
		for i := 1; i < len(list); i++ {
			if !list[i].ID.Before(list[i-1].ID) {
				r.Fatal("they are not newest first")
			}
		}
		r.Pass(91 * job.Day)
		if n := r.left(); n != 0 {
			r.Errorf("%d entries are kept for ever", n)
		}
	}, 120)
}

// Nobody can push out of the audit log what others did, however many entries come.
func TestNobodyFlushesTheAuditLog(t *testing.T) {
	scenario(t, func(r *rig) {
		const most = 200
		root := job.Actor{Name: "root", Admin: true}
		note := func(by job.Actor, n int) {
			r.Helper()
			for range n {
				if err := r.log.Note(r.Context(), by, "noted", "x", 1); err != nil {
					r.Fatal(err)
				}
			}
		}
		of := func(name string) (n int) {
			r.Helper()
			list, err := r.log.List(r.Context(), job.ID{}, 10*most)
			if err != nil {
				r.Fatal(err)
			}
			for _, a := range list {
				if a.By.Name == name {
					n++
				}
			}
			return n
		}
		if err := r.log.Note(r.Context(), ann, job.AuditToken, "kept", 0); err != nil { // by ann, who is no admin: it is about tokens
			r.Fatal(err)
		}
		note(ann, 40)
		note(root, 30)
		flood := job.Actor{Name: "flood"}
		for range 2 {
			note(flood, 5*most)
			if ann, root, flood := of("ann"), of("root"), of("flood"); ann != 41 || root != 30 || flood > most-40 || flood < most-40-100 {
				r.Errorf("of ann %d entries are left, of root %d, of flood %d", ann, root, flood)
			}
			r.Restart(0) // what is there counts
		}
		for i := range 3 * most { // under as many names
			note(job.Actor{Name: "name " + strconv.Itoa(i)}, 1)
		}
		if list, err := r.log.List(r.Context(), job.ID{}, 10*most); err != nil || len(list) > most+31 {
			r.Errorf("%d entries, %v", len(list), err)
		}
		if root := of("root"); root != 30 {
			r.Errorf("of root %d entries are left", root)
		}
		r.Pass(91 * job.Day)
		if n := r.left(); n != 0 {
			r.Errorf("%d entries are kept for ever", n)
		}
	}, 200)
}
