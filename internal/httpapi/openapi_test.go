package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/reprisehq/reprise/internal/door/grid"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/meter"
	"github.com/reprisehq/reprise/internal/policy"
	"github.com/reprisehq/reprise/wire"
)

func document(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(openapi(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// inside finds a value by its path, segments with spaces between.
func inside(doc map[string]any, path string) any {
	var v any = doc
	for _, name := range strings.Fields(path) {
		v = table(v)[name]
	}
	return v
}

var variable = regexp.MustCompile(`\{[a-z]+\}`)

var methods = []string{"get", "post", "put", "patch", "delete"}

// Every call of the route tables is described, with its scopes and the shape of
// its body, and nothing else is.
func TestEveryCallIsDescribed(t *testing.T) {
	h, doc := calls(), document(t)
	described := map[*route]string{}
	for path, item := range table(doc["paths"]) {
		at, _ := url.Parse(variable.ReplaceAllString(path, "x"))
		res, _, _ := h.paths.find(at)
		if res == nil {
			t.Errorf("%s is described, and does not exist", path)
			continue
		}
		for name, o := range table(item) {
			if name == "parameters" {
				continue
			}
			method, operation := strings.ToUpper(name), table(o)
			to := res.method(method)
			if !slices.Contains(methods, name) || to == nil {
				t.Errorf("%s %s is described, and does not exist", method, path)
				continue
			}
			if path != "/crons/preview" { // which is what a group may be called too
				if described[to] != "" {
					t.Errorf("%s and %s are the same", described[to], path)
				}
				described[to] = path
			}
			want := []any{map[string]any{"bearer": []any{}}}
			switch scope := to.oneOf; {
			case scope == public:
				want = []any{}
			case scope != anybody:
				names := []any{}
				for _, s := range scope.Names() {
					names = append(names, s)
				}
				want = []any{map[string]any{"bearer": names}}
			}
			if got := operation["security"]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s is described with the scopes %v, and has %v", method, path, got, want)
			}
			if text, _ := operation["summary"].(string); text == "" || operation["operationId"] == nil || operation["tags"] == nil {
				t.Errorf("%s %s has no summary, operationId or tags", method, path)
			}
			if table(operation["responses"])["default"] == nil {
				t.Errorf("%s %s does not tell of refusals that any call may meet", method, path)
			}
			if ref, _ := inside(operation, "requestBody content application/json schema $ref").(string); to.body != nil {
				schema := inside(doc, strings.NewReplacer("#/", "", "/", " ").Replace(ref))
				for _, member := range fieldsOf(to.body) {
					if ref == "" || inside(table(schema), "properties "+member) == nil && table(schema)["allOf"] == nil {
						t.Errorf("%s %s reads the member %s, and its body is described by %q without it", method, path, member, ref)
					}
				}
			}
		}
	}
	for i := range h.list {
		if to := &h.list[i]; described[to] == "" {
			t.Errorf("%s %s is not described in internal/httpapi/openapi", to.method, to.path)
		}
	}
}

// fieldsOf are the names in JSON of the members of a struct.
func fieldsOf(t reflect.Type) (list []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Anonymous:
			list = append(list, fieldsOf(f.Type)...)
		case name != "-" && f.IsExported():
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// The document is OpenAPI 3.1, each schema in it is JSON Schema, and all
// references lead somewhere. testdata/openapi-3.1.json is the schema that the
// OpenAPI Initiative publishes (Apache-2.0).
func TestTheDescriptionIsOpenAPI(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	meta, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	const metaURL, docURL = "https://spec.openapis.org/oas/3.1/schema/2022-10-07", "http://localhost/openapi.json"
	if err = c.AddResource(metaURL, meta); err == nil {
		err = c.AddResource(docURL, doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MustCompile(metaURL).Validate(doc); err != nil {
		t.Error(err)
	}
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				used[ref] = true
				if inside(doc.(map[string]any), strings.NewReplacer("#/", "", "/", " ").Replace(ref)) == nil {
					t.Errorf("%s leads nowhere", ref)
				}
			}
			for _, part := range v {
				walk(part)
			}
		case []any:
			for _, part := range v {
				walk(part)
			}
		}
	}
	walk(doc)
	ids := map[any]bool{}
	for path, item := range table(inside(doc.(map[string]any), "paths")) {
		for _, name := range methods {
			if o := table(table(item)[name]); o != nil && ids[o["operationId"]] {
				t.Errorf("%s %s: another call has its operationId", name, path)
			} else if o != nil {
				ids[o["operationId"]] = true
			}
		}
	}
	kinds := map[string]string{} // generators make one type of names that differ in the first letter's case
	for kind, list := range table(inside(doc.(map[string]any), "components")) {
		for name := range table(list) {
			if was := kinds[strings.ToLower(name)]; was != "" {
				t.Errorf("%s stands below %s and %s", name, was, kind)
			}
			kinds[strings.ToLower(name)] = kind
			if ref := "#/components/" + kind + "/" + name; !used[ref] && kind != "securitySchemes" {
				t.Errorf("%s is not used", ref)
			}
			if kind == "schemas" {
				if _, err := c.Compile(docURL + "#/components/schemas/" + name); err != nil {
					t.Errorf("the schema %s: %v", name, err)
				}
			}
		}
	}
}

func words[T interface{ String() string }](list ...T) (out []string) {
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}

// Words and numbers of the document are those of the code. Every enum of a
// component has to stand here.
func TestTheDescriptionHasTheWordsOfTheCode(t *testing.T) {
	doc := document(t)
	codes, kinds := []string{}, []string{}
	for _, c := range wire.Codes {
		codes = append(codes, c.Code)
	}
	for k := meter.EventKind(0); k < meter.EventKinds; k++ {
		kinds = append(kinds, k.String())
	}
	enums := map[string][]string{
		"Code": codes, "EventKind": kinds, "Status": wire.Statuses, "Scope": job.ScopesAll.Names(),
		"DeadReason":   wire.Reasons,
		"UniqueWhile":  {wire.WhileQueued, wire.WhileActive, wire.WhileExists},
		"Place":        {wire.Keep, wire.Front, wire.Back},
		"Outcome":      {wire.OutcomeOK, wire.OutcomeRetry, wire.OutcomeDead, wire.OutcomeRelease},
		"CurveKind":    {wire.Polynomial, wire.Uniform, wire.Exponential, wire.Constant, wire.Staircase, wire.Linear, wire.List, wire.Immediate},
		"CurveCount":   words(job.CountPrevious, job.CountIncluding),
		"Do":           {wire.DoRetry, wire.DoDead, wire.DoRelease, wire.DoHold},
		"WaitBy":       {wire.ByCurve, wire.ByRule, wire.ByWorker, wire.ByTarget, wire.ByHold, wire.ByGrace, wire.ByFence},
		"PolicySource": {wire.FromJob, wire.FromType, wire.FromQueue, wire.FromDoor, wire.FromServer},
		"WaitReason": {
			wire.WaitNotDue, wire.WaitParked, wire.WaitPaused, wire.WaitHeld, wire.WaitBreaker, wire.WaitGroupParked, wire.WaitBehindHead,
			wire.WaitGroupLimit, wire.WaitMaxRunning, wire.WaitRate, wire.WaitRetryBudget, wire.WaitNoWorker, wire.WaitNoFitting,
			wire.WaitNoFreeWorker, wire.WaitMaxInflight, wire.WaitBudget, wire.WaitInLine,
			wire.WaitBehindTag, wire.WaitAffinity, wire.WaitNoHost, wire.WaitNoCopy, wire.WaitExcluded,
		},
		"BreakerWord":  {wire.BreakerClosed, wire.BreakerOpen, wire.BreakerHalfOpen, wire.BreakerRamping},
		"BreakerOrder": {wire.BreakerOpen, wire.BreakerClosed, wire.BreakerAuto},
		"QueueOrder":   words(job.OrderNone, job.OrderStart, job.OrderStrict),
		"OnDead":       words(job.DeadSkip, job.DeadBlock, job.DeadPark),
		"FrontOrder":   words(job.FrontBySeq, job.FrontLIFO),
		"OnFull":       words(job.FullReject, job.FullDropOldest),
		"LateOK":       {"until_terminal", "never"},
		"Missed":       {wire.MissedOnce, wire.MissedSkip, wire.MissedAll},
		"Budget":       {wire.BudgetFresh, wire.BudgetRemaining},
		"RunStatus":    {wire.RunRunning, wire.RunDone, wire.RunCancelled},
		"RunAction":    words(job.ActionReplay, job.ActionDelete),

		"SessionStatus": {wire.SessionOpen, wire.SessionClosed, wire.SessionCancelling, wire.SessionDone, wire.SessionErrors, wire.SessionCancelled},
		"TaskStatus":    {wire.TaskWaiting, wire.TaskActive, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled},
		"EngineStatus":  {wire.EngineIdle, wire.EngineBusy, wire.EngineStopping, wire.EngineDraining, wire.EngineSuspect, wire.EngineBarred, wire.EngineLost},
		"AttemptEnd": {
			wire.EndedOK, wire.EndedLate, wire.EndedError, wire.EndedLost, wire.EndedTimeout, wire.EndedSuperseded, wire.EndedReleased,
			wire.EndedEvicted, wire.EndedPreempted, wire.EndedWithdrawn, wire.EndedUndelivered, wire.EndedRestarted, wire.EndedCancelled,
		},
		"OptionSource": words(grid.FromSession, grid.FromService, grid.FromBroker, grid.FromProfile),
		"GridProfile":  words(job.ProfileSeed, job.ProfileModern),

		"InboxStatus": wire.InboxStatuses, "InboxGroupState": wire.InboxGroupStates, "InboxTryOutcome": wire.InboxTryOutcomes,
	}
	for name, schema := range table(inside(doc, "components schemas")) {
		list, is := table(schema)["enum"].([]any)
		want, known := enums[name]
		if is != known {
			t.Errorf("the schema %s has an enum: %t; this test knows words for it: %t", name, is, known)
		}
		var got []string
		for _, word := range list {
			got = append(got, word.(string))
		}
		slices.Sort(got)
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			t.Errorf("the schema %s has the words %q; the code has %q", name, got, want)
		}
	}
	for path, want := range map[string]float64{
		"components parameters rows schema maximum":                    wire.PageLimitMax,
		"components schemas Priority default":                          float64(wire.PriorityDefault),
		"components schemas Priority maximum":                          math.MaxUint16,
		"components schemas Labels maxProperties":                      job.LabelsMax,
		"components schemas Progress properties text maxLength":        job.ProgressTextMax,
		"components schemas LeaseRequest properties max maximum":       leaseMax,
		"components schemas LeaseRequest properties lease_ms maximum":  float64(job.Day),
		"components schemas LeaseRequest properties lease_ms default":  float64(engine.LeaseDefault),
		"components schemas LeaseRequest properties wait_ms maximum":   float64(leaseWaitMax.Milliseconds()),
		"components schemas Extension properties ms maximum":           float64(job.Day),
		"components schemas Extensions properties ms maximum":          float64(job.Day),
		"components schemas ReportProgress properties ms maximum":      float64(job.Day),
		"components schemas Retry properties rules maxItems":           job.RulesMax,
		"components schemas TextList maxItems":                         job.AlternativesMax,
		"components schemas Statuses maxItems":                         job.AlternativesMax,
		"components schemas ExitCodes maxItems":                        job.AlternativesMax,
		"components schemas When properties message maxLength":         job.TextBytesMax,
		"components schemas Curve properties delays maxItems":          job.DelaysMax,
		"components schemas Curve properties offset maximum":           job.OffsetMax,
		"components schemas Breaker properties window maximum":         job.WindowMax,
		"components schemas Rate properties per_second maximum":        job.RateMax,
		"components schemas Weights additionalProperties maximum":      job.WeightMax,
		"components schemas DeadReplay properties max_replays default": wire.MaxReplaysDefault,
		"components schemas Patterns maxItems":                         job.CredentialPatternsMax,
		"components parameters actor schema maxLength":                 actorMax,
		"components schemas TaskBatch properties tasks maxItems":       grid.TasksMax,
		"components schemas Seq maximum":                               grid.SeqMax,
		"components schemas Login properties slots maximum":            job.SlotsMax,
	} {
		if got := inside(doc, path); got != want {
			t.Errorf("%s is %v; the code has %v", path, got, want)
		}
	}
	if jobs.PageMax != wire.PageLimitMax {
		t.Error("two limits of a page")
	}
	for _, p := range inside(doc, "paths /policies/preview get").(map[string]any)["parameters"].([]any) {
		if table(p)["name"] == "rows" && inside(table(p), "schema maximum") != float64(policy.RowsMax) {
			t.Error("the rows of a preview have another limit")
		}
	}
}

// A schema has the members of the type that is sent or read, no more and no
// less.
func TestTheDescriptionHasTheMembersOfTheCode(t *testing.T) {
	schemas := table(inside(document(t), "components schemas"))
	var members func(schema any) []string
	members = func(schema any) (list []string) {
		for name := range table(table(schema)["properties"]) {
			list = append(list, name)
		}
		parts, _ := table(schema)["allOf"].([]any)
		for _, part := range parts {
			ref, _ := table(part)["$ref"].(string)
			list = append(list, members(schemas[strings.TrimPrefix(ref, "#/components/schemas/")])...)
		}
		slices.Sort(list)
		return list
	}
	delivery := []string{"lease", "lease_until", "run_until", "start_by", "stop_after_ms", "held", "voided"} // of wire.Job
	for name, v := range map[string]any{
		"Inbox": wire.Inbox{}, "InboxSettings": wire.InboxSettings{}, "InboxKey": wire.InboxKey{}, "InboxPoll": wire.InboxPoll{}, "InboxHTTP": wire.InboxHTTP{},
		"InboxList": wire.InboxList{}, "InboxCounts": wire.InboxCounts{}, "InboxGroups": wire.InboxGroups{}, "InboxMessage": wire.InboxMessage{},
		"InboxError": wire.InboxError{}, "InboxPage": wire.InboxPage{}, "InboxPut": wire.InboxPut{}, "InboxAccepted": wire.InboxAccepted{},
		"InboxIntake": wire.InboxIntake{}, "InboxEdit": wire.InboxEdit{}, "InboxAct": wire.InboxAct{}, "InboxActed": wire.InboxActed{},
		"InboxGroup": wire.InboxGroup{}, "InboxGroupPage": wire.InboxGroupPage{}, "InboxLease": wire.InboxLease{}, "InboxTurn": wire.InboxTurn{},
		"InboxLeased": wire.InboxLeased{}, "InboxAges": wire.InboxAges{}, "InboxPreview": wire.InboxPreview{}, "InboxTry": wire.InboxTry{},
		"LeaseRequest": wire.Lease{}, "Leases": wire.Leases{}, "Extensions": wire.Extensions{},

		"Error": wire.Error{}, "Enqueue": wire.Enqueue{}, "Batch": wire.Batch{}, "Bulk": wire.Bulk{}, "Job": wire.Job{}, "Enqueued": wire.Enqueued{},
		"BulkEnqueued": wire.BulkEnqueued{}, "Retention": wire.Retention{}, "Page": wire.Page{}, "Pages": wire.Pages{},
		"ErrorPage": wire.ErrorPage{}, "JobError": wire.JobError{}, "Counted": wire.Count{}, "Deleted": wire.Deleted{},
		"Patched": wire.Patched{}, "Cancel": wire.Cancel{}, "Retry": wire.Retry{}, "Curve": wire.Curve{}, "Rule": wire.Rule{},
		"When": wire.When{}, "Backoff": wire.Backoff{}, "PolicyPreview": policy.Preview{}, "Explanation": wire.Explanation{},
		"ExplainedReason": wire.Reason{}, "RetryWait": wire.RetryWait{}, "PolicyFrom": wire.PolicyFrom{}, "Delivery": wire.Job{},
		"Extension": wire.Extension{}, "Progress": wire.Progress{}, "ReportProgress": wire.ReportProgress{}, "Release": wire.Release{},
		"Failure": wire.Failure{}, "Settle": wire.Settle{}, "VerdictList": wire.Verdicts{}, "Verdict": wire.Verdict{},
		"QueueList": wire.Queues{}, "QueueRates": wire.QueueRates{}, "QueueSettings": wire.QueueSettings{}, "Queue": wire.Queue{}, "JobCounts": wire.JobCounts{}, "Rate": wire.Rate{},
		"Breaker": wire.Breaker{}, "RetryBudget": wire.RetryBudget{}, "FairShare": wire.FairShare{}, "BreakerState": wire.BreakerState{},
		"Asides": wire.Asides{}, "Aside": wire.Aside{}, "HoldRequest": wire.Hold{}, "Held": wire.Held{}, "OfGroup": wire.OfGroup{},
		"ForceBreaker": wire.ForceBreaker{}, "DeadFilter": wire.DeadFilter{}, "DeadReplay": wire.DeadReplay{},
		"DeadDelete": wire.DeadDelete{}, "DeadOne": wire.DeadOne{}, "DryRun": wire.DryRun{}, "Replay": wire.Replay{},
		"ReplayList": wire.Replays{}, "DeadJob": wire.DeadJob{}, "DeadPage": wire.DeadPage{}, "DeadGroup": wire.DeadGroup{},
		"DeadGroups": wire.DeadGroups{}, "Mark": wire.Mark{}, "CronList": wire.Crons{}, "CronsDeleted": wire.CronsDeleted{},
		"CronPreview": wire.CronPreview{}, "CronPause": wire.CronPause{}, "CronGroup": wire.CronGroup{}, "CronEntry": wire.CronEntry{},
		"NewToken": wire.NewToken{}, "Token": wire.Token{}, "MadeToken": wire.MadeToken{}, "TokenList": wire.Tokens{},
		"Audit": wire.Audit{}, "AuditEntry": wire.AuditEntry{}, "AuditChange": wire.AuditChange{}, "Event": wire.Event{},
		"LostEvents": wire.LostEvents{}, "Version": wire.Version{},
		"OpenSession": wire.OpenSession{}, "ChangeSession": wire.ChangeSession{}, "Session": wire.Session{}, "Option": wire.Option{},
		"TaskCounts": wire.TaskCounts{}, "SessionList": wire.Sessions{}, "Task": wire.Task{}, "TaskBatch": wire.Tasks{}, "TaskAdded": wire.TaskAdded{},
		"TasksAdded": wire.TasksAdded{}, "TaskState": wire.TaskState{}, "Attempt": wire.Attempt{}, "TaskResult": wire.TaskResult{},
		"TaskResults": wire.TaskResults{}, "Collected": wire.Collected{}, "Login": wire.Login{}, "Running": wire.Running{},
		"LoggedIn": wire.LoggedIn{}, "Heartbeat": wire.Heartbeat{}, "Epoch": wire.Epoch{}, "Engine": wire.Engine{}, "EngineList": wire.Engines{},
	} {
		want := fieldsOf(reflect.TypeOf(v))
		if name == "Delivery" {
			want = slices.DeleteFunc(want, func(n string) bool { return n == "voided" }) // a line of its own
		} else if reflect.TypeOf(v) == reflect.TypeFor[wire.Job]() || name == "Enqueued" || name == "DeadJob" {
			want = slices.DeleteFunc(want, func(n string) bool { return slices.Contains(delivery, n) })
		}
		if got := members(schemas[name]); !slices.Equal(got, want) {
			t.Errorf("the schema %s has the members\n%q, and the code\n%q", name, got, want)
		}
	}
}

// schemaWords are the keywords that our schemas use. A word outside it is most
// often half of a description with a comma in it, which YAML makes a member of.
var schemaWords = []string{
	"$ref", "additionalProperties", "allOf", "anyOf", "const", "contentEncoding", "contentMediaType", "default", "deprecated", "description", "enum",
	"examples", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
	"minLength", "minProperties", "minimum", "not", "oneOf", "pattern", "prefixItems", "properties", "propertyNames", "required",
	"title", "type", "uniqueItems",
}

// Clients are generated from the schemas: each word must mean something, an
// object or map has a name, and a value of several types is an anyOf
// (scripts/openapi-clients.sh runs the generators).
func TestSchemasHaveKnownWordsAndNames(t *testing.T) {
	doc, err := readOpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var schema func(at string, v any, named bool)
	schemas := func(at string, v any) {
		for name, part := range table(v) {
			schema(at+"."+name, part, false)
		}
	}
	schema = func(at string, v any, named bool) {
		for word, part := range table(v) {
			if !slices.Contains(schemaWords, word) {
				t.Errorf("%s: %q is no word of a schema", at, word)
			}
			switch word {
			case "properties", "additionalProperties":
				if !named {
					t.Errorf("%s is an object without a name; put it into components.schemas", at)
				}
			case "type":
				if list, many := part.([]any); many && (len(list) != 2 || list[1] != "null") {
					t.Errorf("%s has the types %v; write anyOf, or one type and null", at, list)
				}
			}
			switch word {
			case "properties":
				schemas(at, part)
			case "items", "additionalProperties", "not", "propertyNames":
				schema(at+"."+word, part, false)
			case "allOf", "oneOf", "anyOf", "prefixItems":
				list, _ := part.([]any)
				for i := range list {
					schema(at+"."+word+strconv.Itoa(i), list[i], false)
				}
			}
		}
	}
	components := table(doc["components"])
	for name, part := range table(components["schemas"]) {
		schema(name, part, true)
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		for name, part := range table(v) {
			if name == "schema" {
				schema(at, part, false)
			} else {
				walk(at+" "+name, part)
			}
		}
		list, _ := v.([]any)
		for i := range list {
			walk(at+" "+strconv.Itoa(i), list[i])
		}
	}
	delete(components, "schemas")
	walk("", doc["paths"])
	walk("components", components)
}
