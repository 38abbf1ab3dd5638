package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// What no command calls is called here, on a real server; and each refusal says what was
// asked for.
func TestCallsOfOperatorsOnARealServer(t *testing.T) {
	c, stop := connectGrid()
	defer stop()
	ctx := t.Context()
	entry := wire.CronEntry{Name: "report", Expression: "0 3 * * *", Job: wire.Enqueue{Queue: "nightly", Type: "report"}}
	if _, err := c.SetCron(ctx, "nightly", wire.CronGroup{}); err != nil {
		t.Fatal(err)
	}
	if e, err := c.AddCronEntry(ctx, "nightly", entry); err != nil || e.NextEnqueueAt == 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := c.AddCronEntry(ctx, "nightly", entry); e != nil || client.CodeOf(err) != wire.CodeExists || !strings.HasPrefix(err.Error(), "adding the cron entry report to nightly: ") {
		t.Errorf("%+v, %v", e, err)
	}
	entry.Expression = "0 4 * * *"
	if e, err := c.SetCronEntry(ctx, "nightly", entry); err != nil || e.Expression != "0 4 * * *" {
		t.Errorf("%+v, %v", e, err)
	}
	if p, err := c.PreviewCron(ctx, "0 3 * * *", "UTC", 2); err != nil || len(p.Ticks) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if n, err := c.DeleteCrons(ctx); n != 1 || err != nil {
		t.Errorf("%d groups, %v", n, err)
	}
	if _, err := c.SetBudget(ctx, "gpu", client.AtOnce(2)); err != nil {
		t.Fatal(err)
	}
	j, err := c.Enqueue(ctx, client.Job{Queue: "video", Type: "render"})
	if err != nil {
		t.Fatal(err)
	}
	if bound, err := c.Bind(ctx, j.ID, wire.Binding{Key: "gpu", Cost: 2}); err != nil || len(bound.Budgets) != 1 {
		t.Errorf("%+v, %v", bound, err)
	}
	if bound, err := c.Bind(ctx, "none", wire.Binding{Key: "gpu"}); bound != nil || err == nil || !strings.HasPrefix(err.Error(), "binding job none to a budget: ") {
		t.Errorf("%+v, %v", bound, err)
	}
	if free, err := c.Unbind(ctx, j.ID, "gpu"); err != nil || len(free.Budgets) != 0 {
		t.Errorf("%+v, %v", free, err)
	}
	if rates, err := c.Rates(ctx); err != nil || len(rates) != 1 {
		t.Errorf("%v, %v", rates, err)
	}
	if until, err := c.Hold(ctx, "", "", 0); !until.IsZero() || err == nil {
		t.Errorf("held until %s, %v", until, err)
	}
}

func TestSessionsAndEnginesAreReadToTheirEnd(t *testing.T) {
	broken := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what := r.URL.Path[1:]
		switch after := r.URL.Query().Get("after"); {
		case r.URL.Query().Get("limit") != "1000":
			w.WriteHeader(http.StatusBadRequest)
		case after == "":
			fmt.Fprintf(w, `{%q: [{"id": "a"}, {"id": "b & c"}], "next": "b & c"}`, what)
		case broken || after != "b & c":
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprintf(w, `{%q: [{"id": "d"}]}`, what)
		}
	}))
	defer server.Close()
	c, err := client.New(server.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read := func() (ids []string, errs [2]error) {
		sessions, err := c.Sessions(t.Context())
		for _, s := range sessions {
			ids = append(ids, s.ID)
		}
		engines, bad := c.Engines(t.Context())
		for _, e := range engines {
			ids = append(ids, e.ID)
		}
		return ids, [2]error{err, bad}
	}
	if ids, errs := read(); errs != [2]error{} || !slices.Equal(ids, []string{"a", "b & c", "d", "a", "b & c", "d"}) {
		t.Errorf("%q, %v", ids, errs)
	}
	broken = true // a list that breaks off is none
	ids, errs := read()
	if len(ids) > 0 || errs[0] == nil || errs[1] == nil || !strings.HasPrefix(errs[0].Error(), "listing sessions: ") || !strings.HasPrefix(errs[1].Error(), "listing engines: ") {
		t.Errorf("%q, %v", ids, errs)
	}
}
