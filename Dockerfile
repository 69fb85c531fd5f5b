# One image for API, worker and sandbox gateway. The command selects the program.
FROM node:24.21.0-bookworm-slim

# Needed for TLS to an external Temporal server: the SDK uses the system's certificates.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates \
  && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

COPY tsconfig.json worker.ts migrate.ts ./
COPY domain domain
COPY workflows workflows
COPY activities activities
COPY gateways gateways
COPY api api
COPY db db
COPY runtime runtime
COPY temporal temporal
# For the service `ops`.
COPY cli cli
RUN node --import tsx runtime/bundle-workflows.ts workflow-bundle.js
ENV WORKFLOW_BUNDLE=/app/workflow-bundle.js
# A young generation of 32 MB in place of 16: short-lived objects of concurrent calls die in it, and are not copied.
ENV NODE_OPTIONS=--max-semi-space-size=32

USER node
CMD ["node", "--import", "tsx", "--import", "./runtime/workflow-threads.mjs", "worker.ts"]
