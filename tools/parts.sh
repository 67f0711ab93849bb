#!/usr/bin/env bash
# Runs make targets one after the other, also after one has failed, and prints the time of each:
#   tools/parts.sh TARGET...
set -uo pipefail
cd "$(dirname "$0")/.."
table=
code=0
begun=$SECONDS
for part in "$@"; do
  since=$SECONDS
  result=ok
  "${MAKE:-make}" --no-print-directory "$part" || { code=$?; result=FAILED; }
  table+=$(printf '%-12s %6d s  %s' "$part" $((SECONDS - since)) "$result")$'\n'
done
printf '\n%s%-12s %6d s\n' "$table" total $((SECONDS - begun))
exit "$code"
