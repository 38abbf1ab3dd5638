# `make` alone prints the targets. What needs more than a line is in
# scripts/test.sh, which is also what CI runs.

BIN     := bin/reprise
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := $(if $(VERSION),-ldflags "-X github.com/reprisehq/reprise/internal/server.Version=$(VERSION)")

# Given on the command line: make run ARGS='--root-dir /tmp/q', make sim SEED=7.
ARGS     ?=
SEEDS    ?= 6000
FIRST    ?= 1
CUTS     ?= 1000
FAULT    ?=
PKG      ?=
BY       ?=
FUZZTIME ?= 60s

# Of make peers: RUNS=1 SECONDS=1 ONLY=beanstalkd,river for a look,
# PEERARGS=-continue to go on with an interrupted one.
RUNS     ?= 5
SECONDS  ?= 2
ONLY     ?=
PEERARGS ?=

.DEFAULT_GOAL := help
.PHONY: build run demo test test-race sim fuzz e2e idle peaks jqlimits bench stragglers peers openapi sabotage mutate lint verify docs help

build: ## build bin/reprise
	go build $(LDFLAGS) -o $(BIN) ./cmd/reprise

run: build ## start a server (ARGS='...' adds flags)
	$(BIN) serve $(ARGS)

demo: build ## show what Reprise does, on a server of its own
	$(BIN) demo $(ARGS)

test: ## every Go test except the end-to-end ones
	go test $$(go list ./... | grep -v /test/e2e)

test-race: ## the same with the race detector
	go test -race $$(go list ./... | grep -v /test/e2e)

sim: ## simulated histories and power cuts (SEEDS=8000 FIRST=1 CUTS=1000; SEED=n replays one)
ifeq ($(SEED),)
	go test ./internal/sim -run 'TestSimulation$$' -count=1 -v -timeout 0 -seeds=$(SEEDS) -first=$(FIRST)
	go test ./internal/engine -run PowerCut -count=1 -powercuts=$(CUTS)
	go test ./internal/door/pipeline -run LoseNothing -count=1 -timeout 0 -pipeline.histories=1000
else
	go test ./internal/sim -run 'TestSimulation$$' -count=1 -v -seed=$(SEED)
endif

fuzz: ## every fuzz target, one after the other (FUZZTIME=60s for all together)
	FUZZTIME=$(FUZZTIME) ./scripts/test.sh --only fuzz

e2e: build ## the end-to-end tests against the real binary
	go test ./test/e2e/... -count=1 -timeout 50m

flips: ## one bit flipped at FLIPS=500 places of each kind of file of a data directory
	go test ./internal/store/embedded -run TestAFlippedBit -v -timeout 4h -flips $(or $(FLIPS),500) | grep -E 'places:|^(---|ok|FAIL)'

idle: build ## an idle server is killed after every kind of change, in each sync mode (ROUNDS=200)
	REPRISE_BIN=$(CURDIR)/$(BIN) go test ./test/e2e -run IdleServerIsKilled -count=1 -timeout 3h -v -idle-rounds=$(or $(ROUNDS),200)

peaks: build ## the memory of the server under the worst legal requests; the table in docs/operations.md
	REPRISE_BIN=$(CURDIR)/$(BIN) go test ./test/e2e -run TestPeakMemory -count=1 -timeout 1h -v -peaks | grep -E 'peak:|error|^(---|ok|FAIL)'

jqlimits: ## 300 jq expressions over values of 10 MB, on a busy machine: how far they go over their time limit
	go test ./internal/jq -run TestExpressionsEndAtTheirLimit -count=1 -timeout 1h -v -jqlimits 5 | grep -E 'runs:|behind|^(---|ok|FAIL)'

bench: build ## the benchmark (ARGS='...' adds flags)
	$(BIN) bench $(ARGS)

stragglers: build ## a session on engine processes, one of which is slow, without copies and with
	REPRISE_BIN=$(CURDIR)/$(BIN) go test ./test/e2e -run TestCopiesOfSlowRuns -count=1 -v -straggler-hosts 8 -straggler-tasks 320 -straggler-run 250ms

peers: build ## Reprise and its peers compared; installs them, writes docs/benchmarks.md (RUNS=5 SECONDS=2 ONLY=)
	go -C bench build -buildvcs=false -o ../bin/peers .
	cd bench && ../bin/peers run -runs $(RUNS) -seconds $(SECONDS) -only '$(ONLY)' $(PEERARGS)

openapi: ## lint GET /openapi.json and compile clients generated from it in four languages
	@./scripts/openapi-clients.sh

sabotage: ## break one line at a time, in a copy: a test must catch each (FAULT=name)
	@go run ./scripts/sabotage -fault '$(FAULT)' $(ARGS)

mutate: ## change operators, constants, conditions, statements of PKG=internal/rule: a test must fail (BY=packages whose tests)
	@go run ./scripts/sabotage -mutate '$(or $(PKG),internal/rule)' -by '$(BY)' $(ARGS)

lint: ## the linter only, in the version the project pins
	@./scripts/test.sh --only setup
	bin/tools/golangci-lint run

verify: ## build, format, lint, vet, generated documents, known vulnerabilities
	@./scripts/test.sh --only lint

docs: ## generate what documents show: states, tables of the protocol, examples, pictures
	go run ./scripts/gendoc
	go test ./internal/httpapi -run "TablesOfTheProtocol|TableOfScopes" -update
	go run ./scripts/rundoc $(addprefix docs/,$(addsuffix .md,retries protection operations tls cron redundancy grid inbox))

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
