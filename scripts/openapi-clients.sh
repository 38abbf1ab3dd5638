#!/usr/bin/env bash
#
# What GET /openapi.json is good for: `./scripts/openapi-clients.sh` lints it with
# redocly, generates a client in each of four languages, and compiles them.
#
# It installs the linter and the generators, in pinned versions, into
# bin/openapi (or $OPENAPI_DIR), and nothing anywhere else but the caches of the
# package managers. A check whose runtime or network is missing is skipped, and
# the line says why. The last line is "N passed, M failed, K skipped"; the exit
# code is 0 exactly if nothing failed.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
exec 2>&1

readonly REDOCLY=@redocly/cli@2.77.0 OPENAPI_TYPESCRIPT=openapi-typescript@7.13.0 TYPESCRIPT=typescript@5.9.3
readonly OAPI_CODEGEN=github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2
readonly GENERATOR=7.25.0 # org.openapitools:openapi-generator-cli
readonly PYTHON_CLIENT=openapi-python-client==0.29.1 MYPY=mypy==2.4.1

usage() {
    cat <<'HELP'
usage: ./scripts/openapi-clients.sh [check...]

Checks, all of them unless some are named:

  redocly     lint of the document                       needs Node with npm
  go          oapi-codegen, go vet                       needs Go
  typescript  openapi-typescript, tsc --strict           needs Node with npm
  python      openapi-python-client, import, mypy        needs Python with venv
  java        openapi-generator, mvn compile             needs a JDK and Maven
HELP
}

passed=0 failed=0 skipped=0
pass() { passed=$((passed + 1)) && echo "ok   $*"; }
fail() { failed=$((failed + 1)) && echo "FAIL $*"; }
skip() { skipped=$((skipped + 1)) && echo "skip $*"; }

# needs NAME COMMAND... skips the check unless all commands are there.
needs() {
    local name=$1 command
    shift
    for command in "$@"; do
        command -v "$command" >/dev/null || { skip "$name: $command is not installed" && return 1; }
    done
}

# offline reports whether the log says that no network was there.
offline() {
    grep -Eqi 'ENOTFOUND|ECONN|EAI_AGAIN|ETIMEDOUT|no such host|name resolution|unknown host|network is unreachable|connection (refused|timed out|reset)|could not (resolve|connect)|failed to establish a new connection|i/o timeout|transfer failed|no plugin found for prefix' "$log"
}

# install NAME COMMAND... is a step that fetches; run NAME COMMAND... one that
# gives the verdict. Both show their output only when they fail.
install() {
    local name=$1
    shift
    "$@" >"$log" 2>&1 && return
    if offline; then skip "$name: no network, needed by: ${*/#npm_install/npm install}"; else fail "$name: $*" && tail -n 20 "$log"; fi
    return 1
}
run() {
    local name=$1
    shift
    "$@" >"$log" 2>&1 && return
    fail "$name: $*"
    tail -n 40 "$log"
    return 1
}

# npm_install keeps what is there: npm looks nothing up for a pinned version that it has.
npm_install() { npm install --prefix "$dir/npm" --no-audit --no-fund --prefer-offline "$@"; }

check_redocly() {
    needs redocly node npm || return
    install redocly npm_install "$REDOCLY" || return
    # Off: two paths that only a word tells apart (the API of Zizq has them);
    # a 4xx at each call (they stand in default); schemas that only x-itemSchema uses.
    cat >"$dir/redocly.yaml" <<'YAML'
extends: [recommended-strict]
rules: {no-ambiguous-paths: off, operation-4xx-response: off, no-unused-components: off}
YAML
    run redocly "$dir/npm/node_modules/.bin/redocly" lint --config "$dir/redocly.yaml" "$doc" && pass "redocly: the document is valid"
}

check_go() {
    needs go go || return
    [[ -x $dir/oapi-codegen && $(go version -m "$dir/oapi-codegen" 2>/dev/null) == *"${OAPI_CODEGEN##*@}"* ]] ||
        install go env GOBIN="$dir" GOFLAGS= go install "$OAPI_CODEGEN" || return
    fresh go
    printf 'package: client\noutput: %s\ngenerate: {models: true, client: true}\n' "$dir/go/client.go" >"$dir/go.yaml"
    run go "$dir/oapi-codegen" -config "$dir/go.yaml" "$doc" || return
    printf 'module client\n\ngo 1.26\n' >"$dir/go/go.mod"
    install go env GOFLAGS= go -C "$dir/go" mod tidy || return
    run go env GOFLAGS= go -C "$dir/go" vet ./... && pass "go: oapi-codegen, the client compiles"
}

check_typescript() {
    needs typescript node npm || return
    install typescript npm_install "$OPENAPI_TYPESCRIPT" "$TYPESCRIPT" || return
    fresh typescript
    run typescript "$dir/npm/node_modules/.bin/openapi-typescript" "$doc" -o "$dir/typescript/api.d.ts" || return
    cat >"$dir/typescript/use.ts" <<'TS'
import type { components, operations } from "./api";

export const job: components["schemas"]["Enqueue"] = { type: "mail", queue: "mail", payload: { to: "ada" } };
export type Answer = operations["enqueue"]["responses"][201]["content"]["application/json"];
export const status = (a: Answer): "scheduled" | "ready" | "in_flight" | "completed" | "dead" => a.status;
TS
    run typescript "$dir/npm/node_modules/.bin/tsc" --noEmit --strict "$dir/typescript/use.ts" && pass "typescript: openapi-typescript, tsc finds no fault"
}

check_python() {
    needs python python3 || return
    [[ -x $dir/venv/bin/pip ]] || run python python3 -m venv "$dir/venv" || return
    install python "$dir/venv/bin/pip" install -q --retries 1 "$PYTHON_CLIENT" "$MYPY" || return
    fresh python
    echo 'content_type_overrides: {application/gzip: application/octet-stream, application/x-ndjson: text/plain}' >"$dir/python.yaml"
    run python "$dir/venv/bin/openapi-python-client" generate --path "$doc" --config "$dir/python.yaml" --meta none --output-path "$dir/python/reprise_client" || return
    # MessagePack is the one format that the generator leaves out; whatever else it could not do is a fault of the document.
    if grep -E 'Unable to|Could not|Cannot|removal of|Unsupported content' "$log" | grep -vq 'application/msgpack$'; then
        fail "python: the generator left something out"
        grep -E 'Unable to|Could not|Cannot|removal of|Unsupported content' "$log" | grep -v 'application/msgpack$'
        return
    fi
    run python env PYTHONPATH="$dir/python" "$dir/venv/bin/python" -c 'import pkgutil, importlib, reprise_client as c
for m in pkgutil.walk_packages(c.__path__, "reprise_client."): importlib.import_module(m.name)' || return
    run python env -C "$dir/python" "$dir/venv/bin/mypy" reprise_client && pass "python: openapi-python-client, every module can be imported, mypy finds no fault"
}

check_java() {
    needs java java javac mvn || return
    local jar=$dir/openapi-generator-cli-$GENERATOR.jar
    [[ -f $jar ]] || install java mvn -B -q dependency:copy "-Dartifact=org.openapitools:openapi-generator-cli:$GENERATOR" "-DoutputDirectory=$dir" || return
    fresh java
    run java java -jar "$jar" generate -g java -i "$doc" -o "$dir/java" || return
    install java mvn -B -q -f "$dir/java/pom.xml" compile && pass "java: openapi-generator, the client compiles"
}

fresh() { rm -rf "${dir:?}/$1" && mkdir -p "$dir/$1"; }

# describe asks a server of its own for the document.
describe() {
    local sock
    sock=$(mktemp -d) || return 1
    go build -buildvcs=false -o "$dir/reprise" ./cmd/reprise >"$log" 2>&1 || return 1
    "$dir/reprise" serve --tcp=false --admin=false --unix "$sock/s" --root-dir "$sock/root" >"$log" 2>&1 &
    local server=$! code
    curl -fsS --retry 50 --retry-all-errors --retry-delay 1 --retry-max-time 60 --unix-socket "$sock/s" -o "$doc" http://localhost/openapi.json 2>>"$log"
    code=$?
    kill "$server" && wait "$server"
    rm -rf "$sock"
    return "$code"
}

readonly ALL="redocly go typescript python java"
for check in "$@"; do
    if [[ " $ALL " != *" $check "* ]]; then
        usage
        [[ $check == -h || $check == --help ]]
        exit $(($? * 2))
    fi
done
dir=${OPENAPI_DIR:-$PWD/bin/openapi}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd) || exit 1
log=$dir/log doc=$dir/openapi.json

if describe; then
    for check in ${*:-$ALL}; do "check_$check"; done
else
    fail "the server did not give its document"
    cat "$log"
fi
echo "$passed passed, $failed failed, $skipped skipped"
exit $((failed > 0))
