#!/usr/bin/env bash
# Runs each fuzz target of the project for some time.
#   tools/fuzz.sh [DURATION]   default 10s
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rlE --include='*_test.go' '^func Fuzz' engine internal sdk server | while read -r file; do
  grep -oE '^func Fuzz[A-Za-z]+' "$file" | sed 's/^func //' | while read -r target; do
    echo "fuzz: $(dirname "$file") $target"
    go -C "$(dirname "$file")" test . -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "${1:-10s}" -parallel 2
  done
done
