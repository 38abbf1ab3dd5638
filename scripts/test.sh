#!/usr/bin/env bash
#
# The command that tests everything: `./scripts/test.sh`.
#
# It sets up what a fresh Debian machine lacks, runs every part of the tests,
# says what each part took beside what it should take, and ends with one line:
#
#     N passed, M failed, K skipped
#
# A test counts as one; so does a check that is no Go test (the build, the
# format). The exit code is 0 exactly if nothing failed. Nothing fails because a
# machine is slow: a part that takes longer than it should is only said to, and
# the limits that stop what hangs are ten times what is needed.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
exec 2>&1 # one stream, so that an error stands where it happened

usage() {
    cat <<'HELP'
usage: ./scripts/test.sh [--only part[,part...]] [--help]

Parts, in order, with what each should take on two cores:

  setup   8 min  Go, a C compiler, the linter and govulncheck, Python and Node;
                 always runs, and says first what it will install
  lint    5 min  build, format, linter, vet, generated documents, known
                 vulnerabilities
  unit    8 min  go test -race of every package except test/e2e
  sim     3 min  simulated histories of the engine, as many as fit into 2 min
                 but at least 500, and simulated power cuts of the store,
                 without -race
  fuzz   60 s    every fuzz target, one after the other (building them: 4 min)
  e2e     6 min  test/e2e against the real binary
  clients 3 min  GET /openapi.json: lint, and a client generated from it in each
                 of four languages, compiled (scripts/openapi-clients.sh)
  peers  60 s    tests of bench/ and a smoke run of it with one peer (building
                 them: 4 min)

What cannot run here without a network is skipped and said so. With CI=true a
skip of something that could have been installed is a failure.

Environment: FUZZTIME (default 60s) is shared by all fuzz targets; SIMTIME
(default 120s) is for histories, POWERCUTS (default 1000) how many cuts to
simulate.
HELP
}

# What is fetched where it is missing. Versions are pinned: the same commit
# gives the same verdict tomorrow.
readonly GOLANGCI=github.com/golangci/golangci-lint/v2/cmd/golangci-lint GOLANGCI_VERSION=v2.15.0
readonly GOVULNCHECK=golang.org/x/vuln/cmd/govulncheck GOVULNCHECK_VERSION=v1.8.0
readonly GO_FETCHED=go1.26.8 # where the installed Go is older than go.mod asks

readonly TOOLS=$PWD/bin/tools
readonly PARTS="setup lint unit sim fuzz e2e clients peers"

# ---- counting ---------------------------------------------------------------

passed=0 failed=0 skipped=0
failures=() # what failed, named again at the end
table=()    # one line per part

say() { printf '%s\n' "$*"; }
pass() {
    passed=$((passed + 1))
    say "ok   $*"
}
fail() {
    failed=$((failed + 1))
    failures+=("$*")
    say "FAIL $*"
}
skip() {
    skipped=$((skipped + 1))
    say "skip $*"
}
# skip_installable is for what a machine with a network would have: in CI its
# absence is a failure, because nobody would read the skip.
skip_installable() {
    if [[ ${CI:-} == true ]]; then fail "$* (in CI this is a failure)"; else skip "$*"; fi
}

# check NAME COMMAND... runs a command whose exit code is the verdict. Its
# output is shown only when it failed.
check() {
    local name=$1 start=$SECONDS code
    shift
    say "...  $name"
    "$@" >"$tmp/check" 2>&1
    code=$?
    if ((code == 0)); then
        pass "$name ($((SECONDS - start)) s)"
    else
        fail "$name ($((SECONDS - start)) s)"
        sed 's/^/       /' "$tmp/check"
    fi
    return "$code"
}

# offline reports whether the text in file $1 says that no network was there,
# as opposed to an install that went wrong.
offline() {
    grep -Eq 'dial (tcp|udp)|no such host|[Tt]emporary failure (in name )?resol|network is unreachable|[Cc]onnection (refused|timed out|reset)|i/o timeout|TLS handshake timeout|proxyconnect|GOPROXY=off|Could not (resolve|connect)|context deadline exceeded' "$1"
}

# ---- parts ------------------------------------------------------------------

begin() {
    part_name=$1 part_start=$SECONDS part_failed=$failed
    say ""
    say "== $1: $2"
}
# end SECONDS closes the part that was begun, and says so if it took longer.
end() {
    local took=$((SECONDS - part_start)) verdict=ok
    ((took > $1)) && verdict="ok, but slower than it should be"
    ((failed > part_failed)) && verdict=FAILED
    table+=("$(printf '%-12s %6d s  of %5d s   %s' "$part_name" "$took" "$1" "$verdict")")
    part_name=""
}

# has DIRECTORY reports whether a Go package stands there already.
has() { compgen -G "$1/*.go" >/dev/null; }

wanted() { [[ -z $only || ,$only, == *,$1,* ]]; }

# ---- set-up -----------------------------------------------------------------

# older A B: version A comes before version B.
older() { [[ $1 != "$2" && $(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

apt_install() {
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        say "     (missing: $*; not root with apt-get, so nothing is installed)"
        return 1
    fi
    say "     installing $* with apt-get"
    {
        limited 1200 apt-get update -q &&
            DEBIAN_FRONTEND=noninteractive limited 2400 apt-get install -q -y --no-install-recommends "$@"
    } >"$tmp/apt" 2>&1 && return 0
    if offline "$tmp/apt"; then say "     no network for apt-get"; else tail -n 15 "$tmp/apt"; fi
    return 1
}

# go_version prints the version of a go command by itself, as 1.26.8.
go_version() { (cd / && GOTOOLCHAIN=local "$1" version 2>/dev/null) | sed -n 's/^go version go\([0-9.]*\).*/\1/p'; }

# lacking COMMAND=PACKAGE[,PACKAGE]... prints the Debian packages of those
# commands that are not here.
lacking() {
    local pair
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || [[ -x /usr/local/go/bin/${pair%%=*} ]] || tr ',' ' ' <<<"${pair#*=}"
    done
}
# A C compiler because the race detector needs cgo; curl because docs/jobs.md is run.
readonly BASE_COMMANDS="go=golang-go gcc=gcc,libc6-dev git=git make=make curl=ca-certificates,curl"
# For the programs of examples/. A Node before 22.18 cannot run TypeScript by
# itself; then tsc translates it.
readonly EXAMPLE_COMMANDS="python3=python3 node=nodejs tsc=node-typescript"
readonly PEER_COMMANDS="beanstalkd=beanstalkd"
readonly CLIENT_COMMANDS="python3=python3,python3-venv npm=npm javac=default-jdk-headless mvn=maven"

# installed NAME VERSION: exactly this version of a tool, built by this Go, is there.
installed() {
    local built
    built=$(go version -m "$TOOLS/$1" 2>/dev/null)
    [[ $built == *": $(go env GOVERSION 2>/dev/null)"$'\n'* && $built == *$'\t'"$2"$'\t'* ]]
}

# announce says what will be installed, before it is.
announce() {
    local packages tools=()
    # shellcheck disable=SC2086 # words are wanted
    packages=$({
        lacking $BASE_COMMANDS
        ! wanted e2e || lacking $EXAMPLE_COMMANDS
        ! wanted peers || lacking $PEER_COMMANDS
        ! wanted clients || lacking $CLIENT_COMMANDS
    } | tr '\n' ' ')
    if wanted lint || wanted setup; then
        installed golangci-lint "$GOLANGCI_VERSION" || tools+=("golangci-lint $GOLANGCI_VERSION")
        installed govulncheck "$GOVULNCHECK_VERSION" || tools+=("govulncheck $GOVULNCHECK_VERSION")
    fi
    [[ -z $packages ]] || say "     to install with apt-get, if it may: $packages"
    ((${#tools[@]} == 0)) || say "     to build into bin/tools (about 3 min): $(join ', ' "${tools[@]}")"
    say "     Go modules that are missing come into Go's module cache"
}
join() {
    local between=$1 text=$2 word
    shift 2
    for word in "$@"; do text+=$between$word; done
    say "$text"
}

setup_go() {
    local need have missing
    need=$(sed -n 's/^go \([0-9.]*\).*/\1/p' go.mod)

    # shellcheck disable=SC2086 # words are wanted
    missing=$(lacking $BASE_COMMANDS)
    # shellcheck disable=SC2086
    [[ -z $missing ]] || apt_install $missing

    command -v go >/dev/null || export PATH=$PATH:/usr/local/go/bin
    if ! command -v go >/dev/null; then
        fail "Go: none found; install Go $need or newer and run this again"
        return 1
    fi
    have=$(go_version go)
    if older "$have" "$need"; then
        fetch_go "$have" "$need" || return 1
        have=$(cd / && go env GOVERSION)
        have=${have#go}
        if older "$have" "$need"; then
            fail "Go: go.mod asks for $need, and GO_FETCHED in this script is only $have"
            return 1
        fi
    fi
    pass "Go $have (go.mod asks for $need)"

    if command -v "$(go env CC)" >/dev/null; then
        pass "C compiler for the race detector: $(go env CC)"
    else
        fail "C compiler: none found; install gcc and libc6-dev (the race detector needs it)"
    fi
}

# fetch_go replaces a Go that is too old. From 1.21 on, Go fetches its
# successor when it is named; an older one (Debian 12 has 1.19) can still
# download the very same toolchain, which is published as a module.
fetch_go() {
    local have=$1 need=$2 module dir log=$tmp/toolchain
    say "     Go $have is older than $need: fetching $GO_FETCHED"
    if ! older "$have" 1.21; then
        export GOTOOLCHAIN=$GO_FETCHED
        go version >"$log" 2>&1 && return 0
    else
        module=golang.org/toolchain@v0.0.1-$GO_FETCHED.$(go env GOOS)-$(go env GOARCH)
        if (cd / && go mod download "$module") >"$log" 2>&1; then
            dir=$(go env GOMODCACHE)/$module
            # A module cache holds no executable files; a toolchain has to.
            chmod -R u+x "$dir/bin" "$dir/pkg/tool"
            export PATH=$dir/bin:$PATH GOTOOLCHAIN=local
            hash -r
            return 0
        fi
    fi
    if offline "$log"; then
        fail "Go: $have is installed, $need is needed, and there is no network to fetch it"
    else
        fail "Go: $have is installed, $need is needed, and fetching $GO_FETCHED failed:"
        tail -n 15 "$log"
    fi
    return 1
}

# tool NAME PACKAGE VERSION installs one tool unless exactly this version,
# built by this Go, is there.
tool() {
    local name=$1 package=$2 version=$3 start=$SECONDS
    if installed "$name" "$version"; then
        pass "$name $version (already there)"
        return
    fi
    say "     installing $name $version"
    mkdir -p "$TOOLS"
    if (cd / && GOBIN=$TOOLS GOFLAGS='' limited 2400 go install "$package@$version") >"$tmp/tool" 2>&1; then
        pass "$name $version installed ($((SECONDS - start)) s)"
        return
    fi
    rm -f "${TOOLS:?}/$name" # another version must not judge this commit
    if offline "$tmp/tool"; then
        skip_installable "$name $version: not here, and no network to fetch it"
    else
        fail "$name $version: the install failed"
        tail -n 15 "$tmp/tool" | sed 's/^/       /'
    fi
}

# limited SECONDS COMMAND... stops a command that hangs, and says so.
limited() {
    local seconds=$1 code
    shift
    timeout --foreground --kill-after=5 "$seconds" "$@"
    code=$?
    ((code != 124 && code != 137)) || echo "killed by the time limit of $seconds s"
    return "$code"
}

setup_languages() {
    local missing command
    # shellcheck disable=SC2086 # words are wanted
    missing=$(lacking $EXAMPLE_COMMANDS)
    # shellcheck disable=SC2086
    [[ -z $missing ]] || apt_install $missing || true
    for command in python3 node tsc; do
        if command -v "$command" >/dev/null; then
            pass "$command: $("$command" --version)"
        else
            skip_installable "$command is not here and could not be installed; the tests of examples/ need it"
        fi
    done
}

part_setup() {
    begin setup "the machine"
    announce
    if ! setup_go; then
        end 480
        exit 1 # nothing below can run
    fi
    if limited 2400 go mod download >"$tmp/mod" 2>&1; then
        pass "modules"
    elif offline "$tmp/mod"; then
        fail "modules: some are not here, and there is no network to fetch them"
    else
        fail "modules: the download failed"
        tail -n 15 "$tmp/mod" | sed 's/^/       /'
    fi
    if wanted lint || wanted setup; then
        tool golangci-lint "$GOLANGCI" "$GOLANGCI_VERSION"
        tool govulncheck "$GOVULNCHECK" "$GOVULNCHECK_VERSION"
    fi
    if wanted e2e; then setup_languages; fi
    check "the counter of tests" go build -o bin/tools/testcount ./scripts/testcount || exit 1
    end 480
}

# ---- build, format, lint, vet -----------------------------------------------

part_lint() {
    begin lint "build, format, lint, vet"
    local version=""
    version=$(git describe --tags --always --dirty 2>/dev/null)
    check "build" go build ./...
    if has cmd/reprise; then
        check "build of bin/reprise" go build -o bin/reprise \
            ${version:+-ldflags "-X $module/internal/server.Version=$version"} ./cmd/reprise
    fi
    if [[ -x $TOOLS/golangci-lint ]]; then
        check "format (golangci-lint fmt --diff)" "$TOOLS/golangci-lint" fmt --diff
        check "linter" "$TOOLS/golangci-lint" run --timeout 40m
    else
        skip "format and linter: golangci-lint is not here (set-up says why)"
    fi
    check "vet" go vet ./...
    if [[ -f bench/go.mod ]]; then # a module of its own, so ./... leaves it out
        check "build of bench/" go -C bench build ./...
        check "vet of bench/" go -C bench vet ./...
    fi
    if has scripts/gendoc; then
        check "generated documents are fresh" go run ./scripts/gendoc -check
    fi
    if has scripts/rundoc; then
        check "examples and pictures of the documents are fresh" go run ./scripts/rundoc -check docs/{retries,protection,operations,tls,cron,redundancy,grid,inbox}.md
    fi
    vulnerabilities
    end 300
}

# vulnerabilities fails only for what this code calls, and where the database
# cannot be reached says that nothing was checked.
vulnerabilities() {
    if [[ ! -x $TOOLS/govulncheck ]]; then
        skip "vulnerabilities: govulncheck is not here (set-up says why)"
        return
    fi
    limited 900 "$TOOLS/govulncheck" ./... >"$tmp/vuln" 2>&1
    case $? in
    0) pass "no known vulnerability is called" ;;
    3)
        fail "a known vulnerability is called"
        sed 's/^/       /' "$tmp/vuln"
        ;;
    *)
        if offline "$tmp/vuln" || grep -q 'fetching vulnerabilities' "$tmp/vuln"; then
            skip "vulnerabilities: the database cannot be reached from here, nothing was checked"
        else
            fail "govulncheck could not check this code"
            tail -n 15 "$tmp/vuln" | sed 's/^/       /'
        fi
        ;;
    esac
}

# ---- Go tests ---------------------------------------------------------------

# go_tests NAME ARGUMENTS... runs go test, in the module at go_dir if that is
# set, and adds what it counted. Lines of passed tests that contain $show are
# printed. A run in which no test ran proves nothing, so
# it fails.
go_tests() {
    local name=$1 p=0 f=0 s=0 codes
    shift
    rm -f "$tmp/counts"
    go -C "${go_dir:-.}" test -json -p 2 "$@" 2>&1 | bin/tools/testcount -trim "$module" -show "${show:-}" -counts "$tmp/counts"
    codes="${PIPESTATUS[*]}"
    if [[ ! -s $tmp/counts ]] || ! read -r p f s <"$tmp/counts"; then
        fail "$name: the tests could not be counted (exit codes $codes)"
        return
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    if ((f > 0)); then
        mapfile -t -O "${#failures[@]}" failures < <(sed -n "2,\$s/^/$name: /p" "$tmp/counts")
    elif [[ $codes != "0 0" ]]; then
        fail "$name: go test failed without naming a test (exit codes $codes)"
    elif ((p + s == 0)); then
        fail "$name: no test ran"
    fi
    say "     $name: $p passed, $f failed, $s skipped"
}

part_unit() {
    begin unit "go test -race"
    local packages
    mapfile -t packages < <(go list -e ./... | grep -v "^$module/test/e2e\(/\|$\)")
    if ((${#packages[@]} == 0)); then
        fail "unit: go list finds no package"
    else
        go_tests unit -race -timeout 50m "${packages[@]}"
    fi
    end 480
}

part_sim() {
    begin sim "simulated histories, simulated power cuts"
    # Flags of one package stop the other, so each runs by itself. The table of
    # what was reached is only in the output of -v, and of a failure.
    show=' histories, ' go_tests "sim (histories)" ./internal/sim -run 'TestSimulation$' -count=1 -timeout 30m \
        -seeds=1000000 -time="${SIMTIME:-120s}"
    go_tests "sim (power cuts)" ./internal/engine -run PowerCut -count=1 -timeout 30m \
        -powercuts="${POWERCUTS:-1000}"
    end 180
}

part_e2e() {
    begin e2e "the real binary"
    if has test/e2e && has cmd/reprise; then
        if check "build of bin/reprise" go build -o bin/reprise ./cmd/reprise; then
            go_tests e2e ./test/e2e/... -count=1 -timeout 50m
        fi
    else
        skip "e2e: test/e2e or cmd/reprise does not exist yet"
    fi
    end 360
}

# ---- clients generated from the description ----------------------------------

part_clients() {
    begin clients "GET /openapi.json and what is generated from it"
    local missing p f s line
    # shellcheck disable=SC2086 # words are wanted
    missing=$(lacking $CLIENT_COMMANDS)
    # shellcheck disable=SC2086
    [[ -z $missing ]] || apt_install $missing || true
    limited 1800 scripts/openapi-clients.sh | tee "$tmp/clients"
    read -r p _ f _ s _ < <(tail -n 1 "$tmp/clients")
    if ! [[ $p$f$s =~ ^[0-9]+$ ]]; then
        fail "clients: the checks could not be counted"
    else
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        while read -r line; do failures+=("clients: $line"); done < <(sed -n 's/^FAIL //p' "$tmp/clients")
        ((s == 0)) || [[ ${CI:-} != true ]] || fail "clients: $s skipped (in CI this is a failure)"
    fi
    end 180
}

# ---- comparison with peers --------------------------------------------------

# part_peers proves that the comparison still works; its figures mean nothing
# here. The module is fetched and built first, so that the budget is for running.
part_peers() {
    if ! [[ -f bench/go.mod ]]; then
        begin peers "Reprise and a peer"
        skip "peers: bench/ does not exist yet"
        end 60
        return
    fi
    begin "peers: build" "bench/, a module of its own"
    local ready=yes
    if ! limited 2000 go -C bench mod download >"$tmp/mod" 2>&1; then
        ready=""
        if offline "$tmp/mod"; then
            skip_installable "peers: modules of bench/ are not here, and no network to fetch them"
        else
            fail "peers: fetching the modules of bench/ failed"
            tail -n 15 "$tmp/mod" | sed 's/^/       /'
        fi
    elif ! check "build of bin/reprise" go build -o bin/reprise ./cmd/reprise ||
        ! check "build of bin/peers" go -C bench build -o ../bin/peers . ||
        ! check "build of the tests of bench/" go -C bench test -run '^$' ./...; then
        ready=""
    fi
    if [[ -n $ready ]] && ! command -v beanstalkd >/dev/null; then
        apt_install beanstalkd
    fi
    end 240

    begin peers "Reprise and beanstalkd, small counts"
    if [[ -n $ready ]]; then
        go_dir=bench go_tests peers -count=1 -timeout 10m ./...
        if command -v beanstalkd >/dev/null; then
            check "smoke of the comparison" in_bench ../bin/peers smoke
        else
            skip_installable "smoke of the comparison: beanstalkd is not here and could not be installed"
        fi
    fi
    end 60
}

in_bench() (cd bench && limited 450 "$@")

# ---- fuzzing ----------------------------------------------------------------

# part_fuzz builds one instrumented binary per package first, so that the time
# for fuzzing is spent on fuzzing. Each target gets its share of what is left.
part_fuzz() {
    begin "fuzz: build" "the fuzz targets"
    local targets=() dirs=() names=() package dir name bin i
    if ! go test -list '^Fuzz' ./... >"$tmp/fuzzlist" 2>&1; then
        fail "fuzz: some packages do not build, their targets are missing below"
        grep -Ev '^(ok|\?|Fuzz)' "$tmp/fuzzlist" | tail -n 15 | sed 's/^/       /'
    fi
    while read -r name package _; do # names first, then "ok  package  time"
        case $name in
        Fuzz*) names+=("$name") ;;
        ok)
            for name in "${names[@]}"; do targets+=("$package $name"); done
            names=()
            ;;
        *) names=() ;;
        esac
    done <"$tmp/fuzzlist"
    local built="" last=""
    for i in "${!targets[@]}"; do
        package=${targets[i]% *}
        if [[ $package != "$last" ]]; then
            last=$package built=yes bin=$tmp/${package//\//_}.fuzz
            check "fuzz binary of ${package#"$module"/}" go test -c -fuzz=. -o "$bin" "$package" || built=""
        fi
        if [[ -z $built ]]; then unset "targets[i]"; else dirs+=("$(go list -f '{{.Dir}}' "$package")"); fi
    done
    targets=("${targets[@]}")
    end 240

    local total
    total=$(seconds "${FUZZTIME:-60s}")
    begin fuzz "${#targets[@]} targets share $total s"
    ((${#targets[@]} > 0)) || skip "fuzz: no fuzz target yet"
    local deadline=$((SECONDS + total - 2)) share start cache
    cache=$(go env GOCACHE)/fuzz
    for i in "${!targets[@]}"; do
        read -r package name <<<"${targets[i]}"
        bin=$tmp/${package//\//_}.fuzz dir=${dirs[i]}
        # One second of every share goes to starting and stopping.
        share=$(((deadline - SECONDS) / (${#targets[@]} - i) - 1))
        ((share >= 1)) || share=1
        start=$SECONDS
        if (cd "$dir" && limited $((share + 600)) "$bin" -test.run='^$' -test.fuzz="^$name\$" \
            -test.fuzztime="${share}s" -test.fuzzminimizetime=5s -test.parallel=2 \
            -test.fuzzcachedir="$cache/$package") >"$tmp/fuzz" 2>&1 || ended_late "$tmp/fuzz"; then
            pass "$(printf '%-40s %3d s  %s' "${package#"$module"/}.$name" $((SECONDS - start)) "$(executions "$tmp/fuzz")")"
        else
            fail "${package#"$module"/}.$name ($((SECONDS - start)) s)"
            sed 's/^/       /' "$tmp/fuzz"
        fi
    done
    end "$total"
}

# ended_late reports whether a fuzz run failed of nothing but the end of its
# time: when that comes in the middle of an input, Go's coordinator may take it
# for a failure (golang/go issue 75804). A finding says more, and writes its input.
ended_late() {
    grep -q '^    context deadline exceeded$' "$1" &&
        ! grep -Evq '^(fuzz: elapsed: .*|--- FAIL: Fuzz[A-Za-z0-9]+ \([0-9.]+s\)|    context deadline exceeded|FAIL|exit status 1)$' "$1"
}

# executions is how many inputs a fuzz run tried, from its last report.
executions() { sed -n 's/.*execs: \([0-9]*\).*/\1 inputs/p' "$1" | tail -n 1; }

# seconds turns 90, 90s, 10m or 1h into seconds.
seconds() {
    local n=${1%[smh]}
    case $1 in
    *m) echo $((n * 60)) ;;
    *h) echo $((n * 3600)) ;;
    *) echo $((n)) ;;
    esac
}

# ---- the end ----------------------------------------------------------------

# finish runs however the script ends, so the last line is always the counts.
# shellcheck disable=SC2317 # it is reached through the trap
finish() {
    local code=$? line
    trap - EXIT INT TERM
    if [[ -n $part_name ]]; then
        fail "stopped during $part_name (exit code $code)"
        table+=("$(printf '%-12s %6d s               STOPPED' "$part_name" $((SECONDS - part_start)))")
    elif ((code != 0 && failed == 0)); then
        fail "stopped (exit code $code)"
    fi
    rm -rf "$tmp"
    say ""
    say "part           took   should    verdict"
    for line in "${table[@]}"; do say "$line"; done
    if ((failed > 0)); then
        say ""
        say "failed:"
        for line in "${failures[@]}"; do say "  $line"; done
    fi
    say ""
    say "$passed passed, $failed failed, $skipped skipped"
    exit $((failed > 0)) # a bare exit would give the code from before the trap
}

only=""
while (($# > 0)); do
    case $1 in
    --only=*) only=${1#--only=} ;;
    --only)
        only=${2:-none}
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage
        exit 2
        ;;
    esac
    shift
done
for part in ${only//,/ }; do
    if [[ " $PARTS " != *" $part "* ]]; then
        say "there is no part '$part'; the parts are: $PARTS"
        exit 2
    fi
done
if ! [[ ${FUZZTIME:-60s} =~ ^[1-9][0-9]*[smh]?$ ]]; then
    say "FUZZTIME is '$FUZZTIME', not a time like 60s, 10m or 1h"
    exit 2
fi

part_name="" part_start=0 part_failed=0
tmp=$(mktemp -d) || exit 1
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

module=$(sed -n 's/^module //p' go.mod)
# The version is injected by hand; a checkout that belongs to somebody else
# must not break every build.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false"

part_setup # always: the others stand on it
wanted lint && part_lint
wanted unit && part_unit
wanted sim && part_sim
wanted fuzz && part_fuzz
wanted e2e && part_e2e
wanted clients && part_clients
wanted peers && part_peers
exit 0
