#!/usr/bin/env bash
# Makes a certificate for a gateway on this machine: tls.key and tls.crt in the given folder, or here.
# It is self-signed, so hooks verify it with tls.crt as well.
set -euo pipefail
cd "${1:-.}"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=hookloop-gateway \
  -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout tls.key -out tls.crt -batch 2>/dev/null
