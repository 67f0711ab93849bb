#!/usr/bin/env bash
# Generates the stubs with buf and compiles the hooks: build.sh LANGUAGE..., of ruby, java, cpp and go. The output is in
# .cache/stubs of the repository, and is kept until a source, a library or this script changes.
set -euo pipefail
cd "$(dirname "$0")"
cache=$(cd ../.. && pwd)/.cache
buf=${BUF:-$cache/bin/buf}

# sources prints a hash of all that the output depends on: sources <language>
sources() {
  {
    find build.sh proto ../../proto ../../third_party ../../gen "$1" -type f | LC_ALL=C sort | xargs sha256sum
    dpkg-query -W protobuf-compiler protobuf-compiler-grpc ruby-grpc libgrpc-java 'libgrpc++-dev' 2>/dev/null || true
  } | sha256sum
}

# compile_java compiles generated code and hook, against the libraries of Debian's packages.
compile_java() {
  local jars=/usr/share/java/ classpath
  classpath=$(printf "$jars%s.jar:" grpc-{api,context,core,netty,protobuf,protobuf-lite,stub} protobuf gson guava \
    netty-{buffer,codec,codec-http,codec-http2,common,handler,resolver,transport,tcnative} perfmark-api geronimo-annotation-1.3-spec)
  find "$1/gen" java -name '*.java' >"$1/files"
  javac -nowarn -proc:none -implicit:none -cp "$classpath" -d "$1/classes" "@$1/files"
  echo "$classpath" >"$1/classpath"
  # Debian's Netty has HTTP/2 over TLS by OpenSSL only, and looks for the library under this name.
  mkdir "$1/native"
  cp /usr/lib/*/jni/libnetty-tcnative.so "$1/native/libnetty_tcnative.so"
}

# compile_cpp compiles two files at a time.
compile_cpp() {
  local flags=(-std=c++17 -O1 -Wall -I "$1/gen" $(pkg-config --cflags grpc++ protobuf))
  find "$1/gen" cpp -name '*.cc' | xargs -P 2 -I FILE sh -c 'o=$1/$(echo FILE | tr / _).o; shift; "$@" -c FILE -o "$o"' \
    sh "$1" g++ "${flags[@]}"
  g++ -o "$1/hook" "$1"/*.o $(pkg-config --libs grpc++ protobuf openssl)
}

# compile_go builds a module that imports the stubs of the repository's module gen.
compile_go() { go -C go build -o "$1/hook" .; }

# compile_ruby has nothing to do: Ruby reads the generated files.
compile_ruby() { :; }

for language in "$@"; do
  out=$cache/stubs/$language
  hash=$(sources "$language")
  if [ "$(cat "$out/sources" 2>/dev/null)" = "$hash" ]; then continue; fi
  begun=$SECONDS
  rm -rf "$out"
  mkdir -p "$out/gen"
  [ ! -e "$language/buf.gen.yaml" ] || "$buf" generate --template "$language/buf.gen.yaml" -o "$out/gen"
  "compile_$language" "$out"
  echo "$hash" >"$out/sources"
  echo "  $language: built in $((SECONDS - begun)) s"
done
