#!/usr/bin/env bash
# Fails if proto/ breaks code that was generated from an earlier version. It is compared with the first of
# these that applies: the last commit, if proto/ has uncommitted changes; the commit where this branch left
# main; on main itself, the commit before the last one that changed proto/.
set -euo pipefail
cd "$(dirname "$0")/.."
base() {
  if ! git diff --quiet HEAD -- proto; then
    git rev-parse HEAD
    return
  fi
  local main fork
  for main in origin/main main; do
    fork=$(git merge-base HEAD "$main" 2>/dev/null) || continue
    if [ "$fork" != "$(git rev-parse HEAD)" ]; then
      echo "$fork"
      return
    fi
  done
  git log --format=%H -2 -- proto | sed -n 2p
}
if ! git rev-parse --quiet --verify HEAD >/dev/null 2>&1; then
  echo "breaking: skipped, there is no commit to compare proto/ with"
  exit 0
fi
commit=$(base)
if [ -z "$commit" ] || ! git cat-file -e "$commit:proto" 2>/dev/null || ! git cat-file -e "$commit:buf.yaml" 2>/dev/null; then
  echo "breaking: skipped, there is no earlier proto/ to compare with"
  exit 0
fi
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
git archive "$commit" buf.yaml proto | tar -x -C "$before"
.cache/bin/buf breaking --against "$before"
