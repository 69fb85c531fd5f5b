#!/bin/sh
# Migrates Temporal's two databases, which postgres-roles.sql creates, to the schema of this version. Safe to repeat.
# Server, port and account come from the SQL_* variables of temporal-sql-tool.
set -eu

tool=${TEMPORAL_SQL_TOOL:-temporal-sql-tool}

prepare() {
  database=$1
  schema=$2
  # If the version table exists, the first command changes nothing.
  "$tool" --database "$database" setup-schema --version 0.0
  "$tool" --database "$database" update-schema --schema-name "$schema"
}

prepare temporal postgresql/v12/temporal
prepare temporal_visibility postgresql/v12/visibility
echo 'Temporal schema is up to date'
