#!/usr/bin/env bash
# Generates what is generated: Go code of the hook contract, deep copies of the API types, and their CRDs.
#   tools/gen.sh [FOLDER]
# Everything is written below FOLDER under the names that it has in the repository; without FOLDER, into the repository itself.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-.}
api=engine/api/v1alpha1
# Old files go first, so that nothing outlives its source.
rm -rf "$out/gen/hookloop" "$out/manifests/crds"
.cache/bin/buf generate --output "$out"
.cache/bin/controller-gen \
  object "output:object:dir=$out/$api" \
  crd "output:crd:dir=$out/manifests/crds" \
  "paths=./$api"
