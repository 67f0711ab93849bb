#!/usr/bin/env bash
# Feeds every fuzz target of the project for a time each.
#   tools/fuzz.sh [DURATION]   10s unless said otherwise
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rlE --include='*_test.go' '^func Fuzz' engine transports sdk server | while read -r file; do
  grep -oE '^func Fuzz[A-Za-z]+' "$file" | sed 's/^func //' | while read -r target; do
    echo "fuzz: $(dirname "$file") $target"
    go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${1:-10s}" -parallel 2
  done
done
