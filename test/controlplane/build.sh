#!/usr/bin/env bash
# Builds the control plane program into .cache/bin/controlplane, or to the given path. Does nothing if the
# program is newer than its sources. With Go's build cache a second build takes seconds. This script adds the version
# that the programs report.
#
# K8S=1.31 builds an older Kubernetes, of kubernetes-1.31.mod, into .cache/bin/1.31/controlplane. It runs with the etcd
# of .cache/bin/controlplane, because the older one has another API.
#
# If KUBEBUILDER_ASSETS has all four programs, nothing is built.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
k8s=${K8S:-}
mod=go.mod
flags=()
default=$root/.cache/bin/controlplane
assets=${KUBEBUILDER_ASSETS:-}
if [ -z "$k8s$*" ] && [ -n "$assets" ] && [ -x "$assets/etcd" ] && [ -x "$assets/kube-apiserver" ] &&
  [ -x "$assets/kube-controller-manager" ] && [ -x "$assets/kubectl" ]; then
  echo "using the control plane of KUBEBUILDER_ASSETS=$assets; nothing is built"
  exit 0
fi
if [ -n "$k8s" ]; then
  mod=kubernetes-$k8s.mod
  if [ ! -f "$here/$mod" ]; then
    known=$(cd "$here" && ls kubernetes-*.mod | sed 's/kubernetes-\(.*\)\.mod/\1/' | xargs)
    echo "K8S=$k8s: no Kubernetes version of test/controlplane, expected one of: $known (unset: the newest)" >&2
    exit 2
  fi
  flags=(-modfile="$mod" -tags noetcd)
  default=$root/.cache/bin/$k8s/controlplane
fi
out=${1:-$default}
mkdir -p "$(dirname "$out")"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
if [ -n "$k8s" ]; then
  K8S='' "$0"
  printf '#!/bin/sh\nexec "%s" etcd "$@"\n' "$root/.cache/bin/controlplane" >"$(dirname "$out")/etcd"
  chmod +x "$(dirname "$out")/etcd"
fi
cd "$here"
if [ -x "$out" ] && [ -z "$(find . -newer "$out" -type f ! -name '*.md' -print -quit)" ]; then
  exit 0
fi
version=$(go list -modfile="$mod" -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v*.}
pkg=k8s.io/component-base/version
ldflags="-s -w -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=${minor%%.*} -X $pkg.gitCommit=module -X $pkg.gitTreeState=clean"
exec "$root/tools/go-build.sh" "the control plane (Kubernetes $version)" "${flags[@]}" -ldflags "$ldflags" -o "$out" .
