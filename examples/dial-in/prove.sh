#!/usr/bin/env bash
# Runs hooks that dial in to the gateway of a running `hookloop serve` (see README.md), at GATEWAY with the
# certificate GATEWAY_CA. It needs kubectl, and gRPC for Python.
source "$(dirname "$0")/../prove.bash"

gateway=${GATEWAY:-127.0.0.1:9444}
certificate=${GATEWAY_CA:-tls.crt}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null && wait || true; rm -rf "$work"' EXIT

# dial_in runs a Python file as a hook that dials in; its process id is then in $pid: dial_in <name> <file> <flag…>
dial_in() {
  PYTHONPATH=../../sdk/python PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-/usr/bin/python3}" "$2" \
    --attach "$gateway" --ca-file "$certificate" --token-file "$work/token" "${@:3}" >"$work/$1" 2>&1 &
  pid=$!
}

# again restarts the last rejected hook, which would otherwise retry after half a minute: again <as dial_in>
again() {
  kill "$pid" && wait "$pid" || true
  dial_in "$@"
}

# printed prints yes if a hook has printed a text: printed <name> <text>
printed() { grep -qF "$2" "$work/$1" && echo yes; }

# quote prints the first line with a text in a hook's output: quote <name> <text>
quote() { grep -m1 -F "$2" "$work/$1" | fold -s -w 140 | sed 's/^/  │ /'; }

# listens counts the listening sockets of a process.
listens() {
  local sockets
  sockets=$(find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n')
  awk '$4 == "0A" { print $10 }' "/proc/$1/net/tcp" "/proc/$1/net/tcp6" | grep -cxF "$sockets" || true
}

image() { value '{.spec.template.spec.containers[0].image}' deployment "$1"; }
reason() { value '{.status.conditions[?(@.type=="Synced")].reason}' website "$1"; }

step "The controller's hook is the worker \"website\". Nobody has dialled in as that."
kubectl apply --server-side -f ../website/crd.yaml
kubectl wait --for=condition=Established --timeout=180s -f ../website/crd.yaml >/dev/null
install
kubectl apply -f websites.yaml
eventually "red-site is not synced because of" HookUnreachable reason red-site

step "A laptop dials in with a token, and is refused: the token says who it is, and not that it may."
kubectl create serviceaccount laptop
kubectl create token laptop --audience hookloop --duration 1h >"$work/token"
dial_in laptop ../website/python/hook.py --worker website
eventually "it prints the reason" yes printed laptop "cannot serve"
quote laptop "cannot serve"

step "It gets the right, and serves. It listens nowhere."
kubectl apply -f may-serve.yaml
again laptop ../website/python/hook.py --worker website
eventually "it is attached" yes printed laptop "attached to $gateway"
eventually "red-site's image" nginx:1.29-alpine image red-site
eventually "blue-site's image" nginx:1.29-alpine image blue-site
eventually "sockets that the hook listens on" 0 listens "$pid"

step "Another image is tried out, on the sites of team blue only. This is a right of its own."
sed 's/nginx:1.29-alpine/nginx:1.30-alpine/' ../website/python/hook.py >"$work/changed.py"
trial=(trial "$work/changed.py" --intercept CompositeController/website --labels team=blue)
dial_in "${trial[@]}"
eventually "it prints the reason" yes printed trial "cannot intercept"
quote trial "cannot intercept"
kubectl apply -f may-intercept.yaml
again "${trial[@]}"
eventually "blue-site's image" nginx:1.30-alpine image blue-site
eventually "red-site's image" nginx:1.29-alpine image red-site

step "The trial is over: its process is killed. The site is its old hook's again, at once."
kill -KILL "$pid" && wait "$pid" 2>/dev/null || true
eventually "blue-site's image" nginx:1.29-alpine image blue-site
