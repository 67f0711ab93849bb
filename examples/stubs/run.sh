#!/usr/bin/env bash
# Runs a hook that build.sh has built: run.sh LANGUAGE, of ruby, java, cpp and go. README.md lists the variables.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../.cache/stubs/$1
case $1 in
  ruby) exec ruby -I "$out/gen" "$here/ruby/hook.rb" ;;
  java) exec java -Djava.library.path="$out/native" -cp "$out/classes:$(cat "$out/classpath")" website.Hook ;;
  cpp | go) exec "$out/hook" ;;
  *) echo "$1: expected ruby, java, cpp or go" >&2; exit 2 ;;
esac
