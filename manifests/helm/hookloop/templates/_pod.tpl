{{/* The arguments: several replicas without an election would all work at once. */}}
{{- define "hookloop.args" -}}
{{- $args := .Values.commandArgs }}
{{- $decided := regexMatch "(^| )--leader-election(=| |$)" (join " " $args) }}
{{- if and (gt (int .Values.replicas) 1) (not $decided) }}
{{- $args = append $args "--leader-election" }}
{{- end }}
{{- with .Values.gateway }}
{{- if .enabled }}
{{- $args = append $args (printf "--gateway-address=:%d" (int .port)) }}
{{- $args = concat $args (list "--gateway-tls-cert=/etc/hookloop/gateway/tls.crt" "--gateway-tls-key=/etc/hookloop/gateway/tls.key") }}
{{- if .clientCASecret }}
{{- $args = append $args "--gateway-client-ca=/etc/hookloop/clients/ca.crt" }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml (prepend $args "serve") }}
{{- end }}

{{/* The files of the gateway: kind is volumes or volumeMounts. Root, kind. */}}
{{- define "hookloop.gatewayFiles" -}}
{{- $gateway := (index . 0).Values.gateway }}
{{- $files := list }}
{{- if $gateway.enabled }}
{{- $secret := required "gateway.tlsSecret is empty; expected the name of a Secret with tls.crt and tls.key" $gateway.tlsSecret }}
{{- $files = append $files (dict "name" "gateway" "secret" $secret "path" "/etc/hookloop/gateway") }}
{{- with $gateway.clientCASecret }}
{{- $files = append $files (dict "name" "clients" "secret" . "path" "/etc/hookloop/clients") }}
{{- end }}
{{- end }}
{{- $out := list }}
{{- range $files }}
{{- if eq (index $ 1) "volumes" }}
{{- $out = append $out (dict "name" .name "secret" (dict "secretName" .secret)) }}
{{- else }}
{{- $out = append $out (dict "name" .name "mountPath" .path "readOnly" true) }}
{{- end }}
{{- end }}
{{- with $out }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* The port of an address flag, or nothing where the flag switches it off: root, flag, default port. */}}
{{- define "hookloop.port" -}}
{{- $flag := regexFind (printf "--%s[= ][^ ]*" (index . 1)) (join " " (index . 0).Values.commandArgs) }}
{{- $port := regexFind "[0-9]+$" ($flag | default (index . 2)) }}
{{- if ne $port "0" }}{{ $port }}{{ end }}
{{- end }}

{{/* A mapping with defaults for the keys that it lacks. A key that is false or null is not lacking: defaults, mapping. */}}
{{- define "hookloop.filled" -}}
{{- $filled := deepCopy (index . 1) }}
{{- range $key, $value := index . 0 }}
{{- if not (hasKey $filled $key) }}{{ $_ := set $filled $key $value }}{{ end }}
{{- end }}
{{- toYaml $filled }}
{{- end }}

{{- define "hookloop.podSecurityContext" -}}
{{- $restricted := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- include "hookloop.filled" (list $restricted .Values.podSecurityContext) }}
{{- end }}

{{- define "hookloop.securityContext" -}}
{{- $none := dict "drop" (list "ALL") }}
{{- $restricted := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" $none }}
{{- include "hookloop.filled" (list $restricted .Values.securityContext) }}
{{- end }}
