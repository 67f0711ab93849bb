#!/usr/bin/env bash
# Makes a certificate with which a gateway on this machine can be tried out: tls.key and tls.crt in the folder given, or here. It vouches
# for itself, so that tls.crt is also what hooks verify it with.
set -euo pipefail
cd "${1:-.}"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=hookloop-gateway \
  -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout tls.key -out tls.crt -batch 2>/dev/null
