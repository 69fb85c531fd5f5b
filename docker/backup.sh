# backup.sh <backups>: copies the data folder of Postgres, with all databases, while Postgres runs. From then on Postgres
# keeps its log in <backups>/wal. Keeps the latest 7 copies. Prints the name of the new one.
set -eu
backups=$1
export PGUSER=postgres PGPASSWORD="${POSTGRES_PASSWORD:-}"
data=$(psql --tuples-only --no-align --command='show data_directory')
mkdir -p "$backups/wal"
chown --reference="$data" "$backups/wal"
part="$backups/part"
rm -rf "$part"
mkdir "$part"
# The copy is made while one session is open. tar exits with 1 if a file changed, which the log repairs.
psql --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 <<SQL
select pg_backup_start('backup.sh', true) \g /dev/null
\! tar -C '$data' --warning=no-file-changed --warning=no-file-removed --exclude=./postmaster.pid --exclude='./pg_wal/*' --exclude='./pg_replslot/*' --exclude=pgsql_tmp -czf '$part/data.tar.gz' . || [ \$? -eq 1 ] || rm '$part/data.tar.gz'
\o $part/backup_label
select labelfile from pg_backup_stop();
SQL
[ -s "$part/backup_label" ] && [ -f "$part/data.tar.gz" ]
sync "$part"/*
# A restore can reach instants after the end of the copy, which is therefore its name.
copy="$backups/$(date -u +%Y-%m-%dT%H-%M-%SZ)"
mv "$part" "$copy"
ls -d "$backups"/2*Z | head -n -7 | xargs -r rm -r
first=$(sed -n 's/^START WAL.*(file \(.*\))$/\1/p' "$(ls -d "$backups"/2*Z | head -n 1)/backup_label")
# The first 8 of the 24 digits are the timeline.
ls "$backups/wal" | awk -v first="$first" 'length >= 24 && substr($0, 9, 16) < substr(first, 9, 16)' |
  while read -r name; do rm "$backups/wal/$name"; done
# For node_exporter.
echo "perennial_backup_completed_timestamp_seconds $(date +%s)" >"$backups/perennial.part"
mv "$backups/perennial.part" "$backups/perennial.prom"
echo "$copy"
