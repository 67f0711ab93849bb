#!/usr/bin/env bash
# Builds a program that a module pins with a "tool" line into .cache/bin:
#   tools/build.sh FOLDER NAME
# NAME also renames the program of a module that has only one.
set -euo pipefail
folder=$1
name=$2
root=$(cd "$(dirname "$0")/.." && pwd)
out=$root/.cache/bin/$name
mkdir -p "$(dirname "$out")"
cd "$root/$folder"
mapfile -t programs < <(go list -f '{{.ImportPath}}' tool)
program=
for p in "${programs[@]}"; do
  if [ "${#programs[@]}" -eq 1 ] || [ "$(basename "$p")" = "$name" ]; then program=$p; fi
done
if [ -z "$program" ]; then
  echo "$folder/go.mod has no tool $name" >&2
  exit 1
fi
"$root/tools/go-build.sh" "$name from $program, pinned by $folder/go.mod" -trimpath -buildvcs=false -ldflags "-s -w" -o "$out" "$program"
touch "$out"
