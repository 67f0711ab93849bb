#!/usr/bin/env bash
# Installs missing Debian packages for the SDKs' tests, the examples and the code generators: protoc, mypy,
# Python's gRPC, protobuf, YAML and packaging, openssl, and Node.js. Changes nothing if all of them are installed.
set -euo pipefail
missing=()
need() { # need PACKAGE COMMAND...: the package is missing if the command fails
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
need protobuf-compiler protoc --version
need python3-grpcio /usr/bin/python3 -c 'import grpc'
need python3-protobuf /usr/bin/python3 -c 'import google.protobuf'
need python3-yaml /usr/bin/python3 -c 'import yaml'
need python3-setuptools /usr/bin/python3 -c 'import setuptools.build_meta'
need python3-wheel /usr/bin/python3 -c 'import wheel'
need mypy /usr/bin/python3 -m mypy --version
need python3-pip /usr/bin/python3 -m pip --version
need python3-venv /usr/bin/python3 -c 'import venv, ensurepip'
need openssl openssl version
need nodejs node --version
need npm npm --version
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]}"
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
if [ "$major" -lt 20 ]; then
  echo "Node.js is $(node --version), expected 20 or newer" >&2
  exit 1
fi
