{{- define "webgym.name" -}}
{{- if contains "webgym" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-webgym" (.Release.Name | trunc 42) }}{{ end }}
{{- end }}

{{- define "webgym.labels" -}}
app.kubernetes.io/name: webgym
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "webgym.metadata" -}}
labels:
  {{- include "webgym.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "webgym.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "webgym.env" -}}
- name: WEBGYM_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .Values.apiKey.existingSecret }}
      key: {{ .Values.apiKey.key }}
- name: WEBGYM_REDIS
  {{- if .Values.redis.enabled }}
  value: redis://{{ include "webgym.name" . }}-redis:6379
  {{- else if .Values.redis.existingSecret }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.redis.existingSecret }}
      key: {{ .Values.redis.key }}
  {{- else }}
  value: {{ required "say where Redis is: redis.enabled=true, redis.url or redis.existingSecret" .Values.redis.url | quote }}
  {{- end }}
{{- end }}

{{- define "webgym.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
{{- end }}

{{- define "webgym.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
