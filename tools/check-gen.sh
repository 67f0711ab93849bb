#!/usr/bin/env bash
# Fails when a generated file is not what its source would generate now. The working tree is left as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tools/gen.sh "$fresh"
stale=0
for path in gen manifests/crds engine/api/v1alpha1/zz_generated.deepcopy.go; do
  diff -ru "$path" "$fresh/$path" || stale=1
done
if [ "$stale" -ne 0 ]; then
  echo "check-gen: generated files are stale (above: < committed, > generated); run: make gen" >&2
  exit 1
fi
