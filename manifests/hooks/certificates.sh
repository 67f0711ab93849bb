#!/usr/bin/env bash
# Makes the certificates for mutual TLS between the engine and the hooks of one namespace, with openssl and
# kubectl:
#
#   certificates.sh NAMESPACE SERVICE...
#
# Secrets: hookloop-ca (the namespace's own authority, with its key), hookloop-client (the engine's
# certificate, common name "hookloop") and SERVICE-tls (a hook's certificate) for each Service. The engine
# gets the right to read hookloop-client. Each Secret has ca.crt.
#
# Run it again at any time, at least every 30 days: it renews certificates that expire within 30 days. It
# replaces an authority one year before its end, or if ROTATE_CA=1; the previous one stays in ca.crt. The
# first run distributes the new ca.crt, the next one the certificates. ENGINE is the engine's ServiceAccount
# as NAMESPACE:NAME. KUBECTL and OPENSSL name the programs.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: $0 NAMESPACE SERVICE..." >&2; exit 2; }
namespace=$1; shift
engine=${ENGINE:-hookloop-system:hookloop}
read -ra kubectl <<<"${KUBECTL:-kubectl}"
openssl=${OPENSSL:-openssl}
day=86400
umask 077
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

k() { "${kubectl[@]}" -n "$namespace" "$@"; }

# fetch SECRET KEY FILE: one key of a Secret. It fails if the Secret or the key does not exist, and ends the
# script if kubectl fails.
fetch() {
  local data
  data=$(k get secret "$1" --ignore-not-found -o "jsonpath={.data['${2//./\\.}']}") || exit 1
  [ -n "$data" ] && printf %s "$data" | base64 -d >"$3"
}

# keep SECRET FILE...: writes a Secret with the files as keys.
keep() {
  local name=$1 file files=(); shift
  for file in "$@"; do files+=("--from-file=${file##*/}=$file"); done
  k create secret generic "$name" "${files[@]}" --dry-run=client -o yaml | k apply --server-side --force-conflicts -f - >/dev/null
}

# valid FILE SECONDS: whether the certificate is valid for that long.
valid() { "$openssl" x509 -in "$1" -noout -checkend "$2" >/dev/null; }

authority() {
  local old=$work/old; mkdir "$work/ca" "$old"
  local cert=$work/ca/tls.crt key=$work/ca/tls.key bundle=$work/ca/ca.crt
  if fetch hookloop-ca tls.crt "$cert" && fetch hookloop-ca tls.key "$key" && fetch hookloop-ca ca.crt "$bundle"; then
    if [ -z "${ROTATE_CA:-}" ] && valid "$cert" $((365 * day)); then return; fi
    cp "$cert" "$old/tls.crt"
  fi
  "$openssl" req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -keyout "$key" -out "$cert" \
    -subj "/CN=hookloop $namespace $(date -u +%Y-%m-%dT%H:%M:%SZ)" \
    -addext "keyUsage=critical,keyCertSign,cRLSign" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
  cp "$cert" "$bundle"
  if [ -f "$old/tls.crt" ]; then cat "$old/tls.crt" >>"$bundle"; fi
  keep hookloop-ca "$cert" "$key" "$bundle"
  echo "authority of namespace $namespace: new"
}

# leaf SECRET NAME USAGE SAN: a certificate of the authority, renewed if it is missing, expires soon, or was
# issued by the previous authority. After a change of the authority only ca.crt is replaced first, so that
# both sides trust the new authority before either presents its certificate.
leaf() {
  local dir=$work/leaf-$1; mkdir "$dir"
  local cert=$dir/tls.crt key=$dir/tls.key ca=$work/ca
  if fetch "$1" tls.crt "$cert" && fetch "$1" tls.key "$key" && fetch "$1" ca.crt "$dir/ca.crt" &&
    valid "$cert" $((30 * day)) && "$openssl" verify -CAfile "$ca/ca.crt" "$cert" >/dev/null 2>&1; then
    if ! cmp -s "$dir/ca.crt" "$ca/ca.crt"; then
      cp "$ca/ca.crt" "$dir/ca.crt"
      keep "$1" "$cert" "$key" "$dir/ca.crt"
      echo "Secret $namespace/$1 trusts the new authority; run this again in 5 minutes"
      return
    fi
    if "$openssl" verify -CAfile "$ca/tls.crt" "$cert" >/dev/null 2>&1; then return; fi
  fi
  printf '%s\n' "basicConstraints=critical,CA:FALSE" "keyUsage=critical,digitalSignature" "extendedKeyUsage=$3" "subjectAltName=$4" >"$dir/ext"
  "$openssl" req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$key" -out "$dir/csr" -subj "/CN=$2" 2>"$work/log" &&
    "$openssl" x509 -req -in "$dir/csr" -CA "$ca/tls.crt" -CAkey "$ca/tls.key" -set_serial "0x$("$openssl" rand -hex 16)" -days 365 \
      -extfile "$dir/ext" -out "$cert" 2>>"$work/log" || { cat "$work/log" >&2; exit 1; }
  cp "$ca/ca.crt" "$dir/ca.crt"
  keep "$1" "$cert" "$key" "$dir/ca.crt"
  echo "certificate in Secret $namespace/$1: new"
}

authority
leaf hookloop-client hookloop clientAuth DNS:hookloop
for service in "$@"; do
  leaf "$service-tls" "$service.$namespace" serverAuth \
    "DNS:$service.$namespace,DNS:$service.$namespace.svc,DNS:$service.$namespace.svc.cluster.local"
done
k create role hookloop-client --verb=get --resource=secrets --resource-name=hookloop-client --dry-run=client -o yaml |
  k apply --server-side --force-conflicts -f - >/dev/null
k create rolebinding hookloop-client --role=hookloop-client --serviceaccount="$engine" --dry-run=client -o yaml |
  k apply --server-side --force-conflicts -f - >/dev/null
