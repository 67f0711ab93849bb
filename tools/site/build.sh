#!/usr/bin/env bash
# Builds the site of the documentation into .cache/site.
set -euo pipefail
cd "$(dirname "$0")/../.."
site=$PWD/.cache/site
rm -rf "$site"
HUGO_PARAMS_ROOT=$PWD .cache/bin/hugo build --source tools/site --config hugo.yaml --destination "$site" \
  --cacheDir "$PWD/.cache/hugo" --noBuildLock --panicOnWarning >"$site.log" ||
  { cat "$site.log" >&2; exit 1; }
echo "$(find "$site" -name '*.html' | wc -l) pages in .cache/site; open .cache/site/index.html"
