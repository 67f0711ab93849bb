#!/usr/bin/env bash
# Builds the programs of a module's "tool" lines into .cache/bin, at the versions that its go.mod pins:
#   tools/build.sh FOLDER [NAME]
# NAME renames the program of a module that has only one. The Makefile calls this only if the folder's go.mod
# or go.sum has changed.
set -euo pipefail
folder=$1
name=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$root/.cache/bin
mkdir -p "$bin"
cd "$root/$folder"
for program in $(go list -f '{{.ImportPath}}' tool); do
  out=$bin/${name:-$(basename "$program")}
  "$root/tools/go-build.sh" "$(basename "$out") from $program, pinned by $folder/go.mod" \
    -buildvcs=false -ldflags "-s -w" -o "$out" "$program"
  touch "$out"
done
