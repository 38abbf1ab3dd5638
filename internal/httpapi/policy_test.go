package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/job"
)

func TestAPreviewFallsBackToTheServersPolicy(t *testing.T) {
	curve := job.Curve{Kind: job.CurveConstant, Delay: job.Minute}
	own := job.Retry{Limit: job.LimitOf(2), Curve: &curve}
	a := start(t, httpapi.Options{Live: httpapi.NewLive(httpapi.Changeable{Retry: own})})
	for _, tt := range []struct{ query, want string }{
		{"", `{"limit":2,"rows":[` + row(1, 60_000, 60_000) + `,` + row(2, 60_000, 120_000) + `]}`},
		{"limit=1", `{"limit":1,"rows":[` + row(1, 60_000, 60_000) + `]}`},
		{"curve=constant&delay=1s&rows=1", `{"limit":2,"rows":[` + row(1, 1000, 1000) + `]}`},
		{"policy=" + url.QueryEscape(`{"max_age":"90s"}`), `{"limit":2,"rows":[` + row(1, 60_000, 60_000) + `]}`},
		{"limit=none", `{"limit":0,"rows":[]}`},
	} {
		a.want(200, tt.want, "GET", "/policies/preview?"+tt.query, "")
	}
	got := start(t, httpapi.Options{}).want(200, "*", "GET", "/policies/preview", "")
	if !strings.HasPrefix(got, `{"limit":25,"rows":[`+row(1, 15_000, 15_000)) ||
		!strings.HasSuffix(got, `"total_min_ms":1763395000,"total_max_ms":1772395000}]}`) {
		t.Errorf("without a policy of the server: %s", got)
	}
}

// row is a row of a preview whose wait is certain.
func row(n int, wait, total int64) string {
	return fmt.Sprintf(`{"retry":%d,"min_ms":%d,"mean_ms":%d,"max_ms":%d,"total_min_ms":%d,"total_max_ms":%d}`, n, wait, wait, wait, total, total)
}

func TestARefusedPreviewNamesEveryProblem(t *testing.T) {
	a := start(t, httpapi.Options{})
	for query, says := range map[string][]string{
		"curve=zigzag&limit=x&rows=0&color=red":           {"curve: ", "limit: ", "rows: ", "color: is not known"},
		"limit=1&limit=2":                                 {"limit: is there twice"},
		"policy=%7B%22limt%22:1%7D&base=1s":               {"policy.limt: unknown key", "base: is given beside policy"},
		"policy=%5B%5D":                                   {"policy: must be an object"},
		"limit=%zz":                                       {"invalid query parameters"},
		"curve=exponential&jitter=110%25&unit=0":          {"jitter: ", "unit: must be above 0"},
		"curve=list&delays=" + strings.Repeat("1s,", 200): {"delays: has 201 entries"},
	} {
		body := a.want(400, "*", "GET", "/policies/preview?"+query, "")
		for _, want := range append(says, `"code":"invalid"`) {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %s lacks %q", query, body, want)
			}
		}
	}
	a.want(405, "", "POST", "/policies/preview", "{}")
}
