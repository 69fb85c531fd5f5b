#!/bin/sh
# Creates Temporal's two databases and migrates them to the schema of this version. Safe to repeat.
# Server, port and account come from the SQL_* variables of temporal-sql-tool.
set -eu

prepare() {
  database=$1
  schema=$2
  # If the database and the version table exist, the first two commands change nothing.
  temporal-sql-tool --database "$database" create
  temporal-sql-tool --database "$database" setup-schema --version 0.0
  temporal-sql-tool --database "$database" update-schema --schema-name "$schema"
}

prepare temporal postgresql/v12/temporal
prepare temporal_visibility postgresql/v12/visibility
echo 'Temporal schema is up to date'
