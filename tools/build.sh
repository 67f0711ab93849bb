#!/usr/bin/env bash
# Builds the programs that a module's "tool" lines name into .cache/bin, at the versions that its go.mod pins:
#   tools/build.sh FOLDER
# The Makefile calls it only when the folder's go.mod or go.sum has changed.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root/$1"
mkdir -p "$root/.cache/bin"
for package in $(go list -f '{{.ImportPath}}' tool); do
  echo "building $(basename "$package") (pinned by $1/go.mod)"
  go build -buildvcs=false -ldflags "-s -w" -o "$root/.cache/bin/" "$package"
done
