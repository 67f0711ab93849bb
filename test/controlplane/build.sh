#!/usr/bin/env bash
# Builds the control plane program into .cache/bin/controlplane, or to the given path. Does nothing if the
# program is newer than its sources. With Go's build cache a second build takes seconds. This script adds the version
# that the programs report, and prints the progress of a long build.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/.cache/bin/controlplane}
mkdir -p "$(dirname "$out")"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
cd "$here"
if [ -x "$out" ] && [ -z "$(find . -newer "$out" -type f ! -name '*.md' -print -quit)" ]; then
  exit 0
fi
echo "building the control plane (Kubernetes, etcd, kubectl): about 5 minutes on two cores the first time, seconds from then on"
log=$(mktemp)
started=$(date +%s)
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v*.}
pkg=k8s.io/component-base/version
ldflags="-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*} -X $pkg.gitCommit=module -X $pkg.gitTreeState=clean"
go build -v -ldflags "$ldflags" -o "$out" . 2>"$log" &
build=$!
trap 'kill $build 2>/dev/null || true; rm -f "$log"' EXIT

# go build writes a line for each module that it downloads and for each package that it compiles.
progress() {
  local modules packages
  modules=$(grep -c '^go: downloading' "$log" || true)
  packages=$(grep -c '^[^ :]*$' "$log" || true)
  echo "  $(($(date +%s) - started)) s: $packages of about 2700 packages compiled, $modules modules downloaded"
}

ticks=0
while kill -0 "$build" 2>/dev/null; do
  sleep 1
  ticks=$((ticks + 1))
  if [ $((ticks % 10)) -eq 0 ]; then
    progress
  fi
done
if ! wait "$build"; then
  grep -v -e '^[^ :]*$' -e '^go: downloading' "$log" >&2 || cat "$log" >&2
  exit 1
fi
echo "built $version in $(($(date +%s) - started)) s"
