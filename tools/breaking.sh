#!/usr/bin/env bash
# Fails if proto/ breaks the contract that proto/baseline.binpb records: code that was generated from
# it must keep compiling, and both sides must keep understanding each other. "make gen" runs it
# before it records the current contract. Without the file, "make gen" records a new baseline: that
# is how to break the contract on purpose, and the review sees it.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ ! -f proto/baseline.binpb ]; then
  echo "proto/baseline.binpb is missing; expected the recorded contract. Restore it, or run make gen to record a new one" >&2
  exit 1
fi
.cache/bin/buf breaking proto --against proto/baseline.binpb
