#!/usr/bin/env bash
# Builds the Jaeger program into .cache/bin/jaeger, unless DEMO_JAEGER names one, or a Jaeger 1 is on the PATH. The
# function Find of this package has the same order.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -n "${DEMO_JAEGER:-}" ]; then
  [ -e "$DEMO_JAEGER" ] || { echo "DEMO_JAEGER: there is no file $DEMO_JAEGER, expected a Jaeger 1 program" >&2; exit 1; }
  echo "using the Jaeger of DEMO_JAEGER=$DEMO_JAEGER; nothing is built"
  exit 0
fi
for name in jaeger-all-in-one jaeger; do
  program=$(command -v "$name" || true)
  if [ -n "$program" ] && [[ $("$program" help 2>&1) == *--collector.otlp.grpc.host-port* ]]; then
    echo "using the Jaeger of the PATH, $program; nothing is built"
    exit 0
  fi
done
exec make -s .cache/bin/jaeger
