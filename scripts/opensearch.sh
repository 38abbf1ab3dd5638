#!/bin/bash
# Runs the tests of internal/connect/ship that want a real server, on an OpenSearch that this script starts. It needs a
# JDK 17 or later and Maven.
set -euo pipefail
cd "$(dirname "$0")/.."
port=${1:-9291}
work=$(mktemp -d)
cp -r test/opensearch "$work/maven"
(cd "$work/maven" && mvn -q -B compile dependency:build-classpath -Dmdep.outputFile="$work/classpath")
mkfifo "$work/in"; touch "$work/log"
java -Xmx1g -cp "$work/maven/target/classes:$(cat "$work/classpath")" Run "$port" "$work/data" <"$work/in" >"$work/log" 2>&1 &
node=$!
exec 3>"$work/in" # the node ends when this is closed
trap 'exec 3>&-; wait "$node" || true; rm -rf "$work"' EXIT
grep -q -m1 READY < <(tail -n +1 -f --pid="$node" "$work/log") || { cat "$work/log"; exit 1; }
REPRISE_TEST_OPENSEARCH=127.0.0.1:$port go test -count=1 -run TestARealServer -v ./internal/connect/ship
