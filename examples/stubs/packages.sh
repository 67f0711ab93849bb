#!/usr/bin/env bash
# Installs missing Debian packages for the hooks of this folder: packages.sh [ruby] [java] [cpp] [go]. Changes nothing
# if all of them are installed.
set -euo pipefail
packages=(protobuf-compiler protobuf-compiler-grpc)
for language in "${@:-ruby java cpp}"; do
  for language in $language; do
    case $language in
      ruby) packages+=(ruby ruby-grpc) ;;
      java) packages+=(default-jdk-headless protobuf-compiler-grpc-java-plugin libgrpc-java libprotobuf-java libgoogle-gson-java
        libnetty-java libnetty-tcnative-java libperfmark-java libguava-java libgeronimo-annotation-1.3-spec-java) ;;
      cpp) packages+=(g++ pkgconf libgrpc++-dev libprotobuf-dev libssl-dev nlohmann-json3-dev) ;;
      go) ;; # Go itself builds Hookloop
      *) echo "$language: expected ruby, java, cpp or go" >&2; exit 2 ;;
    esac
  done
done
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "installing ${missing[*]}"
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
