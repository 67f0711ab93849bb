#!/usr/bin/env bash
# Generates what is generated: Go code of the hook contract, deep copies of the API types, and their CRDs.
#   tools/gen.sh           replaces the files, once all of them could be generated, so that none outlives its source
#   tools/gen.sh --check   changes nothing, shows how the files differ from what they should be, and fails if they do
set -euo pipefail
cd "$(dirname "$0")/.."
api=engine/api/v1alpha1
generated=(gen manifests/crds "$api/zz_generated.deepcopy.go")

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
.cache/bin/buf generate --output "$fresh"
.cache/bin/controller-gen \
  object "output:object:dir=$fresh/$api" \
  crd "output:crd:dir=$fresh/manifests/crds" \
  "paths=./$api"

stale=0
for path in "${generated[@]}"; do
  if [ "${1:-}" = --check ]; then
    diff -ru "$path" "$fresh/$path" || stale=1
  elif ! diff -rq "$path" "$fresh/$path" >/dev/null 2>&1; then
    rm -rf "$path"
    mkdir -p "$(dirname "$path")"
    cp -r "$fresh/$path" "$path"
    echo "generated $path"
  fi
done
if [ "$stale" -ne 0 ]; then
  echo "generated files are stale (shown above with - as they are, + as they should be); run: make gen" >&2
  exit 1
fi
