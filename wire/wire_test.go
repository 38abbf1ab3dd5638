package wire

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

func TestOptionalFieldsAreLeftOutAndRequiredZerosAreThere(t *testing.T) {
	for _, tt := range []struct {
		name  string
		value any
		want  string
	}{
		{"job", Job{}, `{"id":"","type":"","queue":"","priority":0,"status":"","ready_at":0,"attempts":0}`},
		{"enqueued", Enqueued{Job: Job{ID: "x", Payload: nil}}, `{"id":"x","type":"","queue":"","priority":0,"status":"","ready_at":0,"attempts":0,"duplicate":false,"folded":false}`},
		{"enqueue", Enqueue{Payload: json.RawMessage("null"), Priority: new(uint16(0)), RetryLimit: new(uint32(0))}, `{"type":"","queue":"","payload":null,"priority":0,"retry_limit":0}`},
		{"retry", Retry{Limit: 0}, `{"limit":0}`},
		{"rules", Retry{Rules: []Rule{{Do: DoDead}}}, `{"rules":[{"do":"dead"}]}`},
		{"no rules", Retry{Rules: []Rule{}}, `{"rules":[]}`},
		{"retention", Retention{DeadMS: new(int64(0))}, `{"dead_ms":0}`},
		{"backoff", Backoff{}, `{"exponent":0,"base_ms":0,"jitter_ms":0}`},
		{"settle", Settle{Outcome: OutcomeRetry, RetryInMS: new(int64(0)), Error: &Failure{}}, `{"id":"","outcome":"retry","error":{"message":""},"retry_in_ms":0}`},
		{"error record", JobError{}, `{"attempt":0,"message":"","dequeued_at":0,"failed_at":0}`},
		{"pages", Pages{}, `{"self":"","next":null,"prev":null}`},
	} {
		if got, err := json.Marshal(tt.value); err != nil || string(got) != tt.want {
			t.Errorf("%s\n got %s, %v\nwant %s", tt.name, got, err, tt.want)
		}
	}
}

func TestTheTableOfCodesHoldsEachCodeOnce(t *testing.T) {
	declared := declaredCodes(t)
	seen := map[string]bool{}
	for _, c := range Codes {
		if seen[c.Code] {
			t.Errorf("%s is there twice", c.Code)
		}
		seen[c.Code] = true
		if !declared[c.Code] {
			t.Errorf("%s has no constant", c.Code)
		}
		if c.Status < 400 || c.Status > 599 || !strings.HasSuffix(c.Meaning, ".") || !strings.HasSuffix(c.Advice, ".") {
			t.Errorf("%+v", c)
		}
		if c.Again && c.Status < 429 {
			t.Errorf("%s: clients take HTTP %d for final", c.Code, c.Status)
		}
	}
	for code := range declared {
		if !seen[code] {
			t.Errorf("%s is not in the table", code)
		}
	}
}

// declaredCodes are the values of the constants Code… in codes.go.
func declaredCodes(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) != 1 {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok {
			code, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Error(err)
			}
			codes[code] = true
		}
		return true
	})
	return codes
}
