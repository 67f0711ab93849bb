#!/usr/bin/env bash
# Runs each fuzz target of the project for some time, as many at a time as there are processors.
#   tools/fuzz.sh [DURATION]   default 10s
# A package's targets share one program, because linking takes longer than a short run.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
DURATION=${1:-10s}
CACHE=$(go env GOCACHE)/fuzz
PROGRAMS=$(mktemp -d)
export DURATION CACHE PROGRAMS
trap 'rm -rf "$PROGRAMS"' EXIT

# targets prints the folder, the program and the name of each target, after it has built the program.
targets() {
  local folder program
  grep -rlE --include='*_test.go' '^func Fuzz' engine internal sdk server | xargs -n 1 dirname | sort -u |
    while read -r folder; do
      program=$PROGRAMS/$folder.test
      go -C "$folder" test -c -vet=off -fuzz . -o "$program" . >&2
      grep -hoE '^func Fuzz[A-Za-z0-9]+' "$folder"/*_test.go | sed 's/^func //' | while read -r name; do
        echo "$root/$folder" "$program" "$name"
      done
    done
}

# run FOLDER PROGRAM TARGET
run() {
  cd "$1"
  local code=0 out
  out=$("$2" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime "$DURATION" -test.parallel 1 \
    -test.fuzzcachedir "$CACHE/$(go list .)" 2>&1) || code=$?
  printf 'fuzz: %s %s\n%s\n' "$1" "$3" "$out"
  return "$code"
}
export -f run
targets | xargs -P "$(nproc)" -L 1 bash -c 'run "$@"' run
