#!/usr/bin/env bash
# run.sh PROGRAM FOLDER SECONDS  runs one fuzz target: first over the corpus that it writes and what earlier runs have found, then over inputs
# that libFuzzer makes of them. FOLDER keeps both, and the inputs of failures, which a later run tries first.
set -euo pipefail
program=$1 folder=$2 seconds=$3
mkdir -p "$folder/found" "$folder/failures"
rm -rf "$folder/corpus"
"$program" "--write-corpus=$folder/corpus"
[ -n "$(ls "$folder/corpus")" ] || { echo "error: $program has written no corpus"; exit 1; }
failures=("$folder"/failures/*)
[ ! -e "${failures[0]}" ] || "$program" -timeout=30 -rss_limit_mb=2048 "${failures[@]}"
[ ! -e "${failures[0]}" ] || rm "${failures[@]}"
exec "$program" -timeout=30 -rss_limit_mb=2048 -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$folder/failures/" \
  "$folder/found" "$folder/corpus"
