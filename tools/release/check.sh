#!/usr/bin/env bash
# Proves the packages of .cache/release as their users get them: outside the repository, from the files and
# tags of the release alone.
#   tools/release/check.sh [CHECK...]   default: all of them
#
# For every language it makes a project with the "hookloop init" of the release, runs the project's tests
# with the published SDK, starts its hook, and runs "hookloop verify" against it. Other projects' packages
# come from Go's module cache or proxy, the npm registry, and the system's Python packages.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
release=$root/.cache/release
dist=$release/dist
version=$(<"$root/VERSION")
tag=v$version
commit=$(git -C "$release/repository" rev-parse "$tag^{commit}")
module=github.com/hookloop/hookloop
IFS=, read -ra platforms <<<"${PLATFORMS//\//_}"
work=$(mktemp -d)
hook=
cleanup() {
  if [ -n "$hook" ]; then kill "$hook" 2>/dev/null || true; fi
  chmod -R u+w "$work"
  rm -rf "$work"
}
trap cleanup EXIT
fail() {
  echo "release-check: $*" >&2
  exit 1
}
passed() { printf '%5d s  %s\n' "$SECONDS" "$*"; }
# quietly COMMAND...: prints the command's output only if it fails
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "failed: $*"; }; }

# The tags are in the clone of the release. Go reads them there, in place of the host that its name has.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$release/repository.insteadOf" GIT_CONFIG_VALUE_0="https://$module"
GOPROXY=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
export GOPROXY
GOPRIVATE=$module,$(go env GOPRIVATE)
export GOPRIVATE GOWORK=off GOMODCACHE=$work/modules GOPATH=$work/gopath
# As in the release, so that packages are compiled once.
export GOFLAGS='-modcacherw -trimpath' CGO_ENABLED=0
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$dist PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

checksums() {
  cd "$dist"
  quietly sha256sum --check --strict SHA256SUMS
  [ "$(ls | wc -l)" = $(($(wc -l <SHA256SUMS) + 1)) ] || fail "SHA256SUMS does not have all files of $dist"
  passed "SHA256SUMS: $(wc -l <SHA256SUMS) files"
}

# A second release, of a clone in another folder, has the same bytes.
reproducible() {
  git clone --quiet --no-local --no-checkout "$release/repository" "$work/again"
  git -C "$work/again" checkout --quiet "$tag^" # the commit that was released
  mkdir "$work/again/.cache"
  ln -s "$root/.cache/bin" "$work/again/.cache/bin"
  env -u GOPROXY -u GOPRIVATE -u GOFLAGS -u GOMODCACHE -u GOPATH "$root/.cache/bin/release" -platforms "$PLATFORMS" -root "$work/again" \
    -out "$work/second" >"$work/log" ||
    { cat "$work/log"; fail "the second release failed"; }
  diff "$dist/SHA256SUMS" "$work/second/dist/SHA256SUMS" || fail "a second release has other bytes"
  passed "reproducible: a second release has the same checksums"
}

programs() {
  local file platform
  for platform in "${platforms[@]}"; do
    file=$work/$platform
    mkdir "$file"
    tar -xzf "$dist/hookloop_${version}_$platform.tar.gz" -C "$file"
    go version -m "$file/hookloop" >"$file/modules"
    grep -q "GOOS=${platform%_*}\$" "$file/modules" && grep -q "GOARCH=${platform#*_}\$" "$file/modules" ||
      fail "the program of $platform is for another platform"
    ! grep -qF "$root" "$file/hookloop" || fail "the program of $platform has paths of this machine"
    awk '$1 == "dep" { print "pkg:golang/" $2 "@" $3 }' "$file/modules" | while read -r url; do
      grep -qF "\"$url\"" "$dist/hookloop_${version}_sbom.cdx.json" || fail "$platform: the SBOM does not have $url"
    done
  done
  hookloop=$work/$(go env GOOS)_$(go env GOARCH)/hookloop
  [ "$("$hookloop" version | head -2)" = "hookloop $tag"$'\n'"commit $commit" ] || fail "version: $("$hookloop" version)"
  if readelf --program-headers "$hookloop" | grep -q INTERP; then fail "the program is not static"; fi
  passed "programs: ${platforms[*]}; static, $tag of commit ${commit:0:12}; the SBOM has all $(grep -c '"purl"' \
    "$dist/hookloop_${version}_sbom.cdx.json") modules"
}

# The chart and the files for kubectl name the same image.
manifests() {
  local image=hookloop/hookloop:$tag file
  quietly "$root/.cache/bin/helm" lint --strict "$dist/hookloop-$version.tgz"
  "$root/.cache/bin/helm" template hookloop "$dist/hookloop-$version.tgz" --include-crds >"$work/chart.yaml"
  for file in "$work/chart.yaml" "$dist/hookloop_${version}_install"*.yaml; do
    grep -qE "image: \"?$image\"?\$" "$file" || fail "$file does not have the image $image"
    [ "$(grep -c '^kind: CustomResourceDefinition' "$file")" = 4 ] || fail "$file does not have the 4 CRDs"
  done
  passed "chart and $(ls "$dist/hookloop_${version}_"*.yaml | wc -l) manifests: image $image, 4 CRDs"
}

# The build stage of the Dockerfile, in folders instead of a container.
image() {
  GOPROXY=file://$release/proxy,$GOPROXY quietly /usr/bin/python3 "$root/tools/release/stage.py" "$release/repository" \
    "$work/image" VERSION="$tag" COMMIT="$commit"
  [ "$("$work/image/out/hookloop" version | head -1)" = "hookloop $tag" ] || fail "the image's program has another version"
  passed "Dockerfile: its build stage makes hookloop $tag"
}

# verify NAME COMMAND...: starts a project's hook, and asks it the questions of "hookloop verify"
verify() {
  local name=$1 address
  shift
  HOOKLOOP_HOOK_LISTEN=127.0.0.1:0 "$@" >"$work/$name.out" 2>&1 &
  hook=$!
  for _ in $(seq 600); do
    address=$(sed -n 's/.*listening on \([0-9.:]*\).*/\1/p' "$work/$name.out" | head -1)
    if [ -n "$address" ] || ! kill -0 "$hook" 2>/dev/null; then break; fi
    sleep 0.1
  done
  [ -n "$address" ] || { cat "$work/$name.out"; fail "the hook in $name does not listen"; }
  quietly "$hookloop" verify --hook "$address" --insecure -f manifests/controller.yaml -f manifests/crd.yaml \
    --parent sample.yaml
  passed "$name: hookloop init, the tests of the project, $(tail -1 "$work/log")"
  kill "$hook"
  wait "$hook" || true
  hook=
}

# init LANGUAGE: a project, without a checkout of Hookloop
init() {
  cd "$work"
  quietly "$hookloop" init "$1-shop" --lang "$1" --kind composite
  cd "$1-shop"
  export HOOKLOOP=$hookloop
}

go_modules() {
  quietly go install "$module/cmd/hookloop@$tag"
  [ "$("$(go env GOPATH)/bin/hookloop" version | head -1)" = "hookloop $tag" ] || fail "go install has another version"
  passed "go install $module/cmd/hookloop@$tag"
  init go
  CONTROLLER_GEN=$root/.cache/bin/controller-gen quietly make test
  go build -o "$work/go-hook" .
  verify go "$work/go-hook"
  mkdir "$work/controller" && cd "$work/controller"
  # The two Go blocks of the tutorial.
  awk '/^```go$/ { file = n++ ? "main_test.go" : "main.go"; next } /^```/ { file = "" } file { print >file }' \
    "$root/docs/tutorial/first-controller-in-go.md"
  quietly go mod init example.com/motd
  quietly go get "$module@$tag"
  quietly go mod tidy
  quietly go test ./...
  passed "go get $module@$tag: the controller of the tutorial and its test"
}

python_wheel() {
  init python
  PYTHON=/usr/bin/python3 quietly make test
  verify python .venv/bin/python hook.py
}

npm_package() {
  init typescript
  # The file in place of the registry's version.
  quietly npm install --no-audit --no-fund --save-exact "$dist/hookloop-hook-$version.tgz"
  touch node_modules/.package-lock.json
  quietly make test
  verify typescript node dist/hook.js
}

# The other checks run the program that this one unpacks.
programs
checks=("$@")
[ $# -gt 0 ] || checks=(checksums manifests image python_wheel npm_package go_modules reproducible)
for check in "${checks[@]}"; do "$check"; done
passed "release $tag: passed ${checks[*]}"
