#!/usr/bin/env bash
# Runs "go build" in the current folder. A line for every hundredth package that it compiles shows the progress of a
# long build:
#   tools/go-build.sh TITLE FLAG... PACKAGE...
set -euo pipefail
title=$1
shift
echo "building $title"
go build -v "$@" 2>&1 | awk '/[ :#]/ { print; next } ++n % 100 == 0 { print "  " n " packages compiled"; fflush() }'
