#!/usr/bin/env bash
# Runs the benchmarks beside the code and compares them with test/bench/baseline.txt:
#   tools/bench-check.sh [-update] [PATTERN]
# It fails if a benchmark has more allocations or bytes than the baseline: these are counts, and nearly equal on all
# machines. Times are printed, but do not count. PATTERN selects benchmarks. -update rewrites the baseline.
set -euo pipefail
cd "$(dirname "$0")/.."
baseline=test/bench/baseline.txt
# limit is the growth in percent that fails, of a difference that benchstat finds significant.
limit=5
out=$(mktemp)
trap 'rm -f "$out"' EXIT
update=
if [ "${1:-}" = -update ]; then
  update=yes
  shift
fi
mapfile -t packages < <(grep -rl --include=*_test.go '^func Benchmark' engine internal transports | grep -v '^internal/protocol/' |
  xargs -n1 dirname | sort -u | sed 's|^|./|')
go test -vet=off -run '^$' -bench "${1:-.}" -benchmem -p 1 -count 6 -benchtime 50ms "${packages[@]}" | tee "$out" |
  awk '/^(pkg:|FAIL|--- FAIL|panic:)/ { print; fflush() }'
if [ -n "$update" ]; then
  grep -E '^(goos|goarch|pkg|cpu|Benchmark)' "$out" >"$baseline"
  exit 0
fi
.cache/bin/benchstat -ignore cpu "$baseline" "$out"
.cache/bin/benchstat -ignore cpu -filter '.unit:(allocs/op OR B/op)' -format csv "$baseline" "$out" 2>/dev/null |
  awk -F, -v limit="$limit" '
    /allocs\/op/ { unit = "allocations" } /B\/op/ { unit = "bytes" }
    $1 == "geomean" { next }
    $2 == 0 && $4 > 0 { printf "%s: %s %s, none in the baseline\n", $1, $4, unit; bad = 1 }
    $6 ~ /^\+/ { grown = $6; sub(/^\+/, "", grown); sub(/%$/, "", grown)
      if (grown + 0 > limit) { printf "%s: %s%% more %s than the baseline\n", $1, grown, unit; bad = 1 } }
    NF >= 6 && $2 != "" { compared++ }
    END { if (!compared) { print "nothing was compared"; bad = 1 } exit bad }'
