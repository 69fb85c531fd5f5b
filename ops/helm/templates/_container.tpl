{{/* The variables that the services of docker-compose.yml have, too. */}}
{{- define "variables.shared" -}}
HOST API_PORT GATEWAY_PORT TEMPORAL_ADDRESS TEMPORAL_NAMESPACE PUBLIC_URL GATEWAY_URL GATEWAY_PUBLIC_URL GATEWAY_KEY SESSION_KEY ENCRYPTION_KEY TASK_QUEUE_PREFIX METRICS_PORT OTEL_EXPORTER_OTLP_ENDPOINT MAIL_FROM CURRENCY_LIMITS_FILE
{{- end }}
{{- define "variables.migrate" -}}
DATABASE_URL LOG_LEVEL NODE_ENV
{{- end }}
{{- define "variables.api" -}}
{{ include "variables.migrate" . }} {{ include "variables.shared" . }} CREDENTIAL_PEPPER CHECKOUT_EXPIRY_HOURS TRUSTED_PROXIES RATE_LIMIT_PER_SECOND TEMPORAL_UI_URL
{{- end }}
{{- define "variables.worker" -}}
{{ include "variables.migrate" . }} {{ include "variables.shared" . }} WORKER_QUEUES WORKER_DEPLOYMENT_NAME BUILD_ID MAINTENANCE RETENTION_DAYS SMTP_URL RENEWALS_PER_SECOND
{{- end }}

{{/* Arguments: values, names of variables, settings. A variable without a setting comes from the Secret. */}}
{{- define "container" -}}
{{- $values := index . 0 -}}
{{- $settings := index . 2 -}}
image: {{ $values.image }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL] }
env:
  {{- range concat (splitList " " (index . 1)) (default list $values.variables) }}
  - name: {{ . }}
    {{- if hasKey $settings . }}
    {{- $value := get $settings . | toString }}
    {{- if has . (list "PUBLIC_URL" "TEMPORAL_ADDRESS") }}{{ $value = required (printf "settings.%s must be set" .) $value }}{{ end }}
    value: {{ $value | quote }}
    {{- else }}
    valueFrom: { secretKeyRef: { name: {{ $values.secret }}, key: {{ . }} } }
    {{- end }}
  {{- end }}
{{- end }}
