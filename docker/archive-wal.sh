# archive-wal.sh <file> <target>: Postgres calls it for each file of its log, at the latest after archive_timeout. Before
# the first backup it keeps none.
set -eu
[ -d "${2%/*}" ] || exit 0
# After a crash Postgres may hand over a file again.
if [ -f "$2.gz" ]; then
  gunzip -c "$2.gz" | cmp "$1" -
  exit
fi
gzip -c "$1" >"$2.part"
sync "$2.part"
mv "$2.part" "$2.gz"
