#!/usr/bin/env bash
# Runs make targets one after the other, also after one has failed, and prints the time of each and the CPU time
# of its processes:
#   tools/parts.sh TARGET...
set -uo pipefail
cd "$(dirname "$0")/.."
measured=$(mktemp)
trap 'rm -f "$measured"' EXIT
TIMEFORMAT='%0R %0U %0S'
table=
code=0
begun=$SECONDS
computed=0
for part in "$@"; do
  result=ok
  { time "${MAKE:-make}" --no-print-directory "$part" 2>&3; } 3>&2 2>"$measured" || { code=$?; result=FAILED; }
  read -r real user system <"$measured"
  computed=$((computed + user + system))
  table+=$(printf '%-12s %6d s %6d s CPU  %s' "$part" "$real" $((user + system)) "$result")$'\n'
done
printf '\n%s%-12s %6d s %6d s CPU\n' "$table" total $((SECONDS - begun)) "$computed"
exit "$code"
