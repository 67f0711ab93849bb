#!/usr/bin/env bash
# Generates the stubs with buf and compiles the hooks: build.sh LANGUAGE..., of ruby, java and cpp. The output is in
# .cache/stubs of the repository, and is kept until a source, a library or this script changes.
set -euo pipefail
cd "$(dirname "$0")"
cache=$(cd ../.. && pwd)/.cache
buf=${BUF:-$cache/bin/buf}

# sources prints a hash of all that the output depends on: sources <language>
sources() {
  {
    find build.sh proto ../../proto ../../third_party "$1" -type f | LC_ALL=C sort | xargs sha256sum
    dpkg-query -W protobuf-compiler protobuf-compiler-grpc ruby-grpc libgrpc-java 'libgrpc++-dev' 2>/dev/null || true
  } | sha256sum
}

# compile_ruby has nothing to do: Ruby reads the generated files.
compile_ruby() { :; }

for language in "$@"; do
  out=$cache/stubs/$language
  hash=$(sources "$language")
  if [ "$(cat "$out/sources" 2>/dev/null)" = "$hash" ]; then continue; fi
  begun=$SECONDS
  rm -rf "$out"
  mkdir -p "$out/gen"
  "$buf" generate --template "$language/buf.gen.yaml" -o "$out/gen"
  "compile_$language" "$out"
  echo "$hash" >"$out/sources"
  echo "  $language: built in $((SECONDS - begun)) s"
done
