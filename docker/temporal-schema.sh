#!/bin/sh
# Makes Temporal's two databases and brings them to the schema of this version. Safe to run again:
# where the server, port and account are comes from the SQL_* variables that temporal-sql-tool reads.
set -eu

prepare() {
  database=$1
  schema=$2
  # The first two change nothing where database and version table are there already.
  temporal-sql-tool --database "$database" create
  temporal-sql-tool --database "$database" setup-schema --version 0.0
  temporal-sql-tool --database "$database" update-schema --schema-name "$schema"
}

prepare temporal postgresql/v12/temporal
prepare temporal_visibility postgresql/v12/visibility
echo 'Temporal schema is up to date'
