#!/usr/bin/env bash
# Builds the Jaeger all-in-one program at the version that program/go.mod pins into .cache/bin/jaeger, and tells how far a long build
# has come. It does nothing when the program is newer than its pins.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/.cache/bin/jaeger}
cd "$here/program"
if [ -x "$out" ] && [ "$out" -nt go.mod ] && [ "$out" -nt go.sum ]; then
  exit 0
fi
mkdir -p "$(dirname "$out")"
program=$(go list -f '{{.ImportPath}}' tool)
version=$(go list -m -f '{{.Version}}' github.com/jaegertracing/jaeger)
echo "building Jaeger $version: about 3 minutes the first time"
log=$(mktemp)
started=$(date +%s)
go build -v -buildvcs=false -ldflags "-s -w -X github.com/jaegertracing/jaeger/pkg/version.latestVersion=$version" -o "$out" "$program" 2>"$log" &
build=$!
trap 'kill $build 2>/dev/null; rm -f "$log"' EXIT
while kill -0 "$build" 2>/dev/null; do
  sleep 1
  elapsed=$(($(date +%s) - started))
  if [ $((elapsed % 10)) -eq 0 ]; then
    echo "  $elapsed s, $(wc -l <"$log") packages compiled"
  fi
done
if ! wait "$build"; then
  cat "$log" >&2
  exit 1
fi
trap 'rm -f "$log"' EXIT
echo "built in $(($(date +%s) - started)) s"
