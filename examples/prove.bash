# Functions for the scripts prove.sh of the examples. They need kubectl with a cluster, `hookloop serve`, and
# the hook of the example.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[1]}")"

# step prints the title of the next step.
step() { printf '● %s\n' "$*"; }

# eventually waits until a command prints the expected text: eventually <what> <expected> <command…>
eventually() {
  local what=$1 expected=$2 got= deadline=$((SECONDS + 180))
  shift 2
  while got=$("$@" 2>&1) || true; [ "$got" != "$expected" ]; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      printf '✗ %s: expected %q, got %q\n' "$what" "$expected" "$got" >&2
      return 1
    fi
    sleep 0.2
  done
  printf '  %s: %s\n' "$what" "$expected"
}

# names lists the names of a query's objects in one line.
names() { kubectl get "$@" -o name | sed 's|.*/||' | sort | paste -sd' '; }

# value prints a field: value <jsonpath> <what to get…>
value() {
  local path=$1
  shift
  kubectl get "$@" -o "jsonpath=$path"
}

# served prints the name of a resource if kubectl knows it: the discovery document may be late.
served() { kubectl get "$1" >/dev/null 2>&1 && echo "$1"; }

# install applies the example's CRDs and controllers, if it has any, and waits until they are served and run.
install() {
  if [ -e crd.yaml ]; then
    kubectl apply --server-side -f crd.yaml
    for crd in $(kubectl get -f crd.yaml -o name); do
      eventually "served" "${crd##*/}" served "${crd##*/}"
    done
  fi
  if [ -e controller.yaml ]; then
    kubectl apply -f controller.yaml
    kubectl wait --for=condition=Ready --timeout=180s -f controller.yaml >/dev/null
  fi
}
