package httpapi

import (
	"net/http"

	"github.com/reprisehq/reprise/internal/job"
)

// reach is how a call says which queues it touches, so that a token for some
// queues can be held to them.
type reach uint8

const (
	wholeServer reach = iota // nothing says it: such a token is refused
	queryQueues              // the parameter queue, which has to be there
	pathQueue                // the queue is in the path
	pathJob                  // a job is, and has a queue
	handlerAsks              // the handler looks, because it is in the body: see within
	ownOnly                  // the handler shows what the token is for
	ownNames                 // what it names belongs to the token: see worker
	noQueue                  // it touches none
)

// need is what a call asks for. The zero value is the scope admin.
type need struct {
	oneOf job.Scopes
	reach reach
}

// open calls need no token at all.
const public = job.ScopesAll + 1

// needs are those of a resource, by method.
type needs struct{ get, post, put, patch, del need }

func (n *needs) of(method string) need {
	switch method {
	case http.MethodGet, http.MethodHead:
		return n.get
	case http.MethodPost:
		return n.post
	case http.MethodPut:
		return n.put
	case http.MethodPatch:
		return n.patch
	case http.MethodDelete:
		return n.del
	}
	return need{}
}

// profiles are those of the Go runtime.
var profiles = &resource{get: (*handler).profile, post: (*handler).profile, stream: true}

func (h *handler) profile(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.profiles.ServeHTTP(w, r)
}

const (
	enqueues = job.ScopeEnqueue
	works    = job.ScopeWork
	reads    = job.ScopeRead
	operates = job.ScopeOperate
	admins   = job.ScopeAdmin
	anybody  = job.ScopesAll
)

// scopes is who may call what: every resource stands here, and one that does
// not is for the scope admin. TestEveryCallHasAScope holds the two together.
var scopes = map[*resource]needs{
	fixed["/jobs"]:             {get: need{reads, queryQueues}, post: need{enqueues, handlerAsks}, patch: need{operates, queryQueues}, del: need{operates, queryQueues}},
	fixed["/jobs/bulk"]:        {post: need{enqueues, handlerAsks}},
	fixed["/jobs/take"]:        {get: need{works, queryQueues}},
	fixed["/jobs/success"]:     {post: need{works, handlerAsks}},
	fixed["/jobs/cancel"]:      {post: need{operates, queryQueues}},
	fixed["/jobs/count"]:       {get: need{reads, queryQueues}},
	fixed["/jobs/settle"]:      {post: need{works, handlerAsks}},
	fixed["/jobs/lease"]:       {post: need{works, handlerAsks}},
	fixed["/jobs/extend"]:      {post: need{works, handlerAsks}},
	fixed["/queues"]:           {get: need{reads, ownOnly}},
	fixed["/policies/preview"]: {get: need{anybody, noQueue}},
	fixed["/dead"]:             {get: need{reads, queryQueues}},
	fixed["/dead/groups"]:      {get: need{reads, wholeServer}}, // a group goes over queues
	fixed["/dead/replay"]:      {post: need{operates, handlerAsks}},
	fixed["/dead/delete"]:      {post: need{operates, handlerAsks}},
	fixed["/dead/export"]:      {get: need{reads, queryQueues}},
	fixed["/replays"]:          {get: need{reads, wholeServer}},
	fixed["/crons"]:            {get: need{reads, wholeServer}, del: need{operates, wholeServer}},
	fixed["/budgets"]:          {get: need{reads, wholeServer}, post: need{operates, wholeServer}},
	fixed["/locks"]:            {get: need{reads, wholeServer}},
	fixed["/jobs/budgets"]:     {del: need{operates, queryQueues}},
	fixed["/audit"]:            {get: need{reads, wholeServer}},
	fixed["/reset"]:            {post: need{admins, wholeServer}},
	fixed["/tokens"]:           {get: need{admins, wholeServer}, post: need{admins, wholeServer}},
	fixed["/backup"]:           {post: need{admins, wholeServer}},
	fixed["/compact"]:          {post: need{operates, wholeServer}},
	fixed["/events"]:           {get: need{reads, queryQueues}},
	fixed["/metrics"]:          {get: need{reads, wholeServer}},
	fixed["/"]:                 {get: need{anybody, noQueue}},
	fixed["/health"]:           {get: need{public, noQueue}},
	fixed["/ready"]:            {get: need{public, noQueue}},
	fixed["/version"]:          {get: need{anybody, noQueue}},
	fixed["/openapi.json"]:     {get: need{anybody, noQueue}},

	oneJob:   {get: need{reads, pathJob}, patch: need{operates, pathJob}, del: need{operates, pathJob}},
	oneQueue: {get: need{reads, pathQueue}, patch: need{operates, pathQueue}},
	oneError: {get: need{reads, pathJob}},
	oneDead:  {get: need{reads, pathJob}, del: need{operates, pathJob}},
	again:    {post: need{operates, pathJob}},
	group:    {get: need{reads, wholeServer}, patch: need{operates, wholeServer}},
	replay:   {get: need{reads, wholeServer}, del: need{operates, wholeServer}},
	oneCron:  {get: need{reads, wholeServer}, put: need{operates, wholeServer}, patch: need{operates, wholeServer}, del: need{operates, wholeServer}}, // entries name any queue
	entries:  {post: need{operates, wholeServer}},
	oneEntry: {get: need{reads, wholeServer}, put: need{operates, wholeServer}, patch: need{operates, wholeServer}, del: need{operates, wholeServer}},
	runEntry: {post: need{operates, wholeServer}},
	profiles: {get: need{admins, wholeServer}, post: need{admins, wholeServer}},
	oneToken: {del: need{admins, wholeServer}},

	ofJob["success"]:  {post: need{works, pathJob}},
	ofJob["failure"]:  {post: need{works, pathJob}},
	ofJob["errors"]:   {get: need{reads, pathJob}},
	ofJob["release"]:  {post: need{works, pathJob}},
	ofJob["cancel"]:   {post: need{operates, pathJob}},
	ofJob["progress"]: {post: need{works, pathJob}},
	ofJob["budgets"]:  {put: need{operates, pathJob}, del: need{operates, pathJob}},
	ofJob["explain"]:  {get: need{reads, pathJob}},

	ofQueue["groups"]:  {get: need{reads, pathQueue}},
	ofQueue["hold"]:    {post: need{operates, pathQueue}},
	ofQueue["release"]: {post: need{operates, pathQueue}},
	ofQueue["breaker"]: {post: need{operates, pathQueue}},

	// Patterns of queues are patterns of locks, too.
	oneLock:    {get: need{reads, pathQueue}, post: need{works, pathQueue}, del: need{works, pathQueue}},
	extendLock: {post: need{works, pathQueue}},
	breakLock:  {post: need{operates, pathQueue}},

	fixed["/inboxes"]: {get: need{reads, ownOnly}},
	oneInbox:          {get: need{reads, pathQueue}, put: need{operates, pathQueue}, del: need{operates, pathQueue}},
	allMessages:       {get: need{reads, pathQueue}, post: need{enqueues, pathQueue}},
	bulkMessages:      {post: need{enqueues, pathQueue}},
	oneMessage:        {get: need{reads, pathQueue}, patch: need{operates, pathQueue}, del: need{operates, pathQueue}},
	inboxGroups:       {get: need{reads, pathQueue}},
	inboxActions:      {post: need{operates, pathQueue}},
	inboxLease:        {post: need{works, pathQueue}},
	inboxPreview:      {get: need{reads, pathQueue}, post: need{reads, pathQueue}},

	oneBudget: {get: need{reads, wholeServer}, post: need{operates, wholeServer}, put: need{operates, wholeServer}, patch: need{operates, wholeServer}, del: need{operates, wholeServer}}, // jobs of any queue use it
	binding:   {post: need{operates, pathJob}, put: need{operates, pathJob}, patch: need{operates, pathJob}, del: need{operates, pathJob}},
	bindings:  {post: need{operates, queryQueues}, put: need{operates, queryQueues}, patch: need{operates, queryQueues}, del: need{operates, queryQueues}},

	fixed["/sessions"]:     {get: need{reads, ownOnly}, post: need{enqueues, handlerAsks}},
	oneSession:             {get: need{reads | enqueues, pathQueue}, patch: need{operates | enqueues, pathQueue}, del: need{operates | enqueues, pathQueue}},
	ofSession["tasks"]:     {post: need{enqueues, pathQueue}},
	ofSession["close"]:     {post: need{enqueues, pathQueue}},
	ofSession["results"]:   {get: need{reads | enqueues, pathQueue}},
	ofSession["collected"]: {post: need{enqueues, pathQueue}},

	ofSession["exclusions"]: {del: need{operates | enqueues, pathQueue}},

	oneTask:               {get: need{reads | enqueues, pathQueue}},
	explainTask:           {get: need{reads | enqueues, pathQueue}},
	commitTask:            {post: need{works, pathQueue}},
	fixed["/engines"]:     {get: need{reads, wholeServer}, post: need{works, ownNames}},
	oneEngine:             {get: need{reads | works, ownNames}},
	ofEngine["heartbeat"]: {post: need{works, ownNames}},
	ofEngine["drain"]:     {post: need{works | operates, ownNames}},
	ofEngine["logoff"]:    {post: need{works | operates, ownNames}},
}
