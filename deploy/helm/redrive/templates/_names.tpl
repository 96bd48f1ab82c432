{{- define "redrive.labels" -}}
app.kubernetes.io/name: redrive
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "redrive.place" -}}
{{- if .urlSecret -}}
valueFrom: { secretKeyRef: { name: {{ .urlSecret | quote }}, key: url } }
{{- else -}}
value: {{ .url | quote }}
{{- end }}
{{- end }}

{{- define "redrive.settings" -}}
- name: REDRIVE_BROKER
  {{- include "redrive.place" .Values.broker | nindent 2 }}
- { name: REDRIVE_KAFKA_DLQ_ENABLED, value: {{ .Values.kafka.dlq.enabled | quote }} }
{{- with .Values.kafka.dlq.topic }}
- { name: REDRIVE_KAFKA_DLQ_TOPIC, value: {{ . | quote }} }
{{- end }}
- { name: REDRIVE_KAFKA_DLQ_MAX_ATTEMPTS, value: {{ .Values.kafka.dlq.maxRetriesBeforeDLQ | quote }} }
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- define "redrive.image" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
{{- end }}

{{- define "redrive.pod" -}}
serviceAccountName: {{ .Values.serviceAccount.name }}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
volumes:
  - { name: tmp, emptyDir: {} }
{{- end }}
