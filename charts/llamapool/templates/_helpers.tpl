{{- define "llamapool.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "llamapool.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "llamapool.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "llamapool.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Cluster-wide objects carry the namespace in their name: two releases of one name must not share them. */}}
{{- define "llamapool.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "llamapool.fullname" .) }}
{{- end }}

{{- define "llamapool.serviceAccountName" -}}
{{- default (include "llamapool.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "llamapool.selectorLabels" -}}
app.kubernetes.io/name: {{ include "llamapool.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "llamapool.labels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end }}
{{- include "llamapool.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "llamapool.image" -}}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (default .chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}

{{- /* Prometheus Operator's kinds are used only where they exist: "true" or nothing. */}}
{{- define "llamapool.podMonitors" -}}
{{- if and .Values.podMonitor.enabled (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/PodMonitor") }}true{{ end }}
{{- end }}

{{- define "llamapool.prometheusRules" -}}
{{- if and .Values.prometheusRule.enabled (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/PrometheusRule") }}true{{ end }}
{{- end }}

{{- /* One way of scraping only: two would count everything twice. */}}
{{- define "llamapool.scrapeAnnotations" -}}
{{- if and .Values.scrapeAnnotations (not (include "llamapool.podMonitors" .)) }}true{{ end }}
{{- end }}

{{- /* The operator's rights where it serves models. */}}
{{- define "llamapool.rules" -}}
- apiGroups: [llamapool.dev]
  resources: [hybridmodels]
  verbs: [get, list, watch]
- apiGroups: [llamapool.dev]
  resources: [hybridmodels/status]
  verbs: [get, patch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [services, configmaps]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch{{ if .Values.limitsNudge.enabled }}, patch{{ end }}]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}
