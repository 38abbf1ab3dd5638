package httpapi_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

const (
	callersTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ownTrace     = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

func TestTheCallersTraceContextGoesIntoJobsThatHaveNone(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		one := func(header, own string) any {
			t.Helper()
			return object(t, a.want(201, "*", "POST", "/jobs", `{"type":"x","queue":"q","payload":1`+own+`}`, "traceparent", header))["traceparent"]
		}
		for _, c := range []struct {
			what, header, own string
			want              any
		}{
			{"none of its own", callersTrace, "", callersTrace},
			{"labels and none of its own", callersTrace, `,"labels":{"a":"b"}`, callersTrace},
			{"its own", callersTrace, `,"traceparent":"` + ownTrace + `"`, ownTrace},
			{"an empty one of its own", callersTrace, `,"traceparent":""`, callersTrace},
			{"an invalid header", "00-1-2-3", "", nil},
			{"an invalid header and its own", "00-1-2-3", `,"traceparent":"` + ownTrace + `"`, ownTrace},
			{"a header of a later version", "01" + callersTrace[2:] + "-more", "", callersTrace},
		} {
			if got := one(c.header, c.own); got != c.want {
				t.Errorf("%s: the job carries %v, want %v", c.what, got, c.want)
			}
		}
		list := object(t, a.want(201, "*", "POST", "/jobs/bulk", `{"jobs":[{"type":"x","queue":"q","payload":1},`+
			`{"type":"x","queue":"q","payload":1,"traceparent":"`+ownTrace+`"}]}`, "traceparent", callersTrace))["jobs"].([]any)
		for i, want := range []string{callersTrace, ownTrace} {
			if got := list[i].(map[string]any)["traceparent"]; got != want {
				t.Errorf("job %d of a bulk carries %v, want %v", i, got, want)
			}
		}
		a.want(400, "*", "POST", "/jobs", `{"type":"x","queue":"q","payload":1,"traceparent":"00-1-2-3"}`, "traceparent", callersTrace)
	})
}
