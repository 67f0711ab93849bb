#!/usr/bin/env bash
# Runs each fuzz target of the project, as many at a time as there are processors.
#   tools/fuzz.sh [AMOUNT]   executions of each target (5000x, the default) or a duration (30s, 10m)
# A package's targets share one program, because linking takes longer than a short run.
#
# A duration ends with an interrupt, not with -fuzztime: at the end of -fuzztime, Go 1.26 and older
# sometimes fail a target with "context deadline exceeded" (https://go.dev/issue/75804).
# An input that covers new code is reduced for 20 executions only. Go's default is 60 seconds, in
# which a target does nothing else: a short run never got to its second input.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
AMOUNT=${1:-5000x}
CACHE=$(go env GOCACHE)/fuzz
PROGRAMS=$(mktemp -d)
export AMOUNT CACHE PROGRAMS
trap 'rm -rf "$PROGRAMS"' EXIT

# targets prints the folder, the program and the name of each target, after it has built the program.
targets() {
  local folder program
  grep -rlE --include='*_test.go' '^func Fuzz' cmd engine internal sdk server transports | xargs -n 1 dirname | sort -u |
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
  local code=0 out limit=() end=()
  case $AMOUNT in
    *x) limit=(-test.fuzztime "$AMOUNT") ;;
    *) end=(timeout --foreground --preserve-status --signal INT "$AMOUNT") ;;
  esac
  out=$("${end[@]}" "$2" -test.run '^$' -test.fuzz "^$3\$" "${limit[@]}" -test.fuzzminimizetime 20x \
    -test.parallel 1 -test.fuzzcachedir "$CACHE/$(go list .)" 2>&1) || code=$?
  printf 'fuzz: %s %s\n%s\n' "$1" "$3" "$out"
  return "$code"
}
export -f run
targets | xargs -P "$(nproc)" -L 1 bash -c 'run "$@"' run
