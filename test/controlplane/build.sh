#!/usr/bin/env bash
# Builds the control plane program into .cache/bin/controlplane. Go's own build cache makes a second build a matter of seconds; this
# script adds the version that the programs report, and tells how far a long build has come.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/.cache/bin/controlplane}
mkdir -p "$(dirname "$out")"
cd "$here"
if [ -x "$out" ] && [ -z "$(find . -newer "$out" -type f -print -quit)" ]; then
  exit 0
fi
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
pkg=k8s.io/component-base/version
ldflags="-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=$(echo "$version" | cut -d. -f2) -X $pkg.gitCommit=module -X $pkg.gitTreeState=clean"
echo "building the control plane (Kubernetes $version, etcd, kubectl): about 6 minutes the first time"
log=$(mktemp)
started=$(date +%s)
go build -v -ldflags "$ldflags" -o "$out" . 2>"$log" &
build=$!
trap 'kill $build 2>/dev/null; rm -f "$log"' EXIT
waited=0
while kill -0 "$build" 2>/dev/null; do
  sleep 1
  waited=$((waited + 1))
  if [ $((waited % 10)) -eq 0 ]; then
    echo "  $(($(date +%s) - started)) s, $(wc -l <"$log") packages compiled"
  fi
done
if ! wait "$build"; then
  grep -v '^[a-z0-9./_-]*$' "$log" >&2 || cat "$log" >&2
  exit 1
fi
trap 'rm -f "$log"' EXIT
echo "built in $(($(date +%s) - started)) s"
