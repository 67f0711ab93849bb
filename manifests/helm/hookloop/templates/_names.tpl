{{/* The app's name. */}}
{{- define "hookloop.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of the release's objects: the release's own where it says the app's name already. */}}
{{- define "hookloop.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- $both := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- .Values.fullnameOverride | default $both | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "hookloop.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "hookloop.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "hookloop.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "hookloop.selector" -}}
app.kubernetes.io/name: {{ include "hookloop.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hookloop.labels" -}}
{{ include "hookloop.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The metadata of a namespaced object. */}}
{{- define "hookloop.metadata" -}}
name: {{ include "hookloop.fullname" . }}
namespace: {{ include "hookloop.namespace" . }}
labels:
  {{- include "hookloop.labels" . | nindent 2 }}
{{- end }}
