{{/* The arguments: several replicas without an election would all work at once. */}}
{{- define "hookloop.args" -}}
{{- $args := .Values.commandArgs }}
{{- $decided := regexMatch "(^| )--leader-election(=| |$)" (join " " $args) }}
{{- if and (gt (int .Values.replicas) 1) (not $decided) }}
{{- $args = append $args "--leader-election" }}
{{- end }}
{{- toYaml (prepend $args "serve") }}
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
