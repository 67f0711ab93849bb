# Functions for the scripts prove.sh of the examples. They need kubectl with a cluster, `hookloop serve`, and
# the hook of the example.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[1]}")"

# step prints the title of the next step.
step() { printf '● %s\n' "$*"; }

# eventually waits until a command prints the expected text: eventually <what> <expected> <command…>
eventually() {
  local what=$1 expected=$2 got= deadline=$((SECONDS + 60))
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

# install applies the example's CRD, if it has one, and its controllers, and waits until they run.
install() {
  [ ! -e crd.yaml ] || kubectl apply --server-side -f crd.yaml
  kubectl apply -f controller.yaml
  kubectl wait --for=condition=Ready --timeout=60s -f controller.yaml >/dev/null
}
