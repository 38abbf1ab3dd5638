package httpapi_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

func TestALeaseFromAQueueThatCannotBeIsRefused(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.put("")
	for name, says := range map[string]string{
		`a,b`: `must not contain ','`, ``: `must not be empty`, `a\u0000`: `must not contain null bytes`, `a*`: `must not contain '*' (reserved)`,
	} {
		a.want(400, `{"error":"queues[1] `+says+`","code":"invalid"}`, "POST", "/jobs/lease", `{"queues":["q","`+name+`"]}`)
	}
	a.want(200, `{"count":1}`, "GET", "/jobs/count?status=ready", "") // and nothing was taken
	a.want(200, "*", "POST", "/jobs/lease", `{"queues":["q"]}`)
}
