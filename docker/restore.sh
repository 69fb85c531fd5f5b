# restore.sh <backups> <data folder> [time]: while Postgres is stopped, puts the latest copy of backup.sh before the time
# in place of the data folder. The next start of Postgres replays its log up to the time, by default all of it.
set -eu
backups=$1
data=$2
time=${3:+$(date -u --date="$3" '+%Y-%m-%d %H:%M:%S.%3N+00')}
name=$(date -u --date="${time:-now}" +%Y-%m-%dT%H-%M-%SZ)
copy=$(ls -d "$backups"/2*Z | awk -v last="$backups/$name" '$0 <= last' | tail -n 1)
[ -n "$copy" ] || { echo "no copy is older than $time" >&2; exit 1; }
former="$data.$(date +%s)"
if [ -e "$data" ]; then mv "$data" "$former"; fi
mkdir -p "$data"
tar -C "$data" -xzf "$copy/data.tar.gz"
cp "$copy/backup_label" "$data/"
# The end of the log that was not stored yet.
if [ -z "$time" ]; then cp "$former"/pg_wal/???????????????????????? "$data/pg_wal/" || :; fi
cat >>"$data/postgresql.auto.conf" <<CONF
restore_command = 'test -f $backups/wal/%f.gz && gunzip -c $backups/wal/%f.gz >%p'
recovery_target_time = '$time'
recovery_target_action = 'promote'
CONF
touch "$data/recovery.signal"
chown -R --reference="$backups/wal" "$data"
chmod 700 "$data"
echo "$copy"
