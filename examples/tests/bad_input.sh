#!/usr/bin/env bash
# bad_input.sh DEMO PLAN: what the programs say to input they cannot use, the exit status, and that nothing is left behind.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/ends.sh"
demo=$1 plan=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
small=(--epochs 1 --images 40 --batch 10)
refuses "nowhere' " "$demo" "$scratch/nowhere"
mkdir "$scratch/empty"
refuses "empty' " "$demo" "$scratch/empty"
mkdir "$scratch/cut"
printf 'not a data file' >"$scratch/cut/train-images-idx3-ubyte"
printf 'not a data file' >"$scratch/cut/train-labels-idx1-ubyte"
refuses "an IDX file of labels begins with 2049" "$demo" "$scratch/cut"
refuses "$scratch/missing/summary.json" "$demo" "${small[@]}" --summary "$scratch/missing/summary.json"
# What a program reads stays as it is, whatever it is called.
before=$(cat "$scratch/cut/"* | cksum)
ln -s cut/train-labels-idx1-ubyte "$scratch/link"
ln "$scratch/cut/train-labels-idx1-ubyte" "$scratch/other-name"
for file in cut/train-labels-idx1-ubyte cut/../cut/train-images-idx3-ubyte link other-name; do
  refuses "is to be written, and is in folder '.*cut', which is read" "$demo" "$scratch/cut" "${small[@]}" --summary "$scratch/$file"
done
[ "$(cat "$scratch/cut/"* | cksum)" = "$before" ] || { echo "FAILED: a data file was overwritten"; failures=$((failures + 1)); }
rm "$scratch/link" "$scratch/other-name"
refuses "too little memory" "$demo" --epochs 1 --images 1000000000
refuses "needs an arena of .*; use a smaller batch or image \(--help has the options\), or free memory" bash -c \
  'ulimit -v 600000; exec "$@"' bash "$demo" --epochs 1 --images 6000 --batch 6000
refuses "^--images: Value 0 not in range" "$demo" --images 0
mkdir -m 0 "$scratch/locked"
chmod 755 "$scratch"
nobody=()
[ "$(id -u)" != 0 ] || nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)   # whom permissions stop
if "${nobody[@]}" "$demo" --help >/dev/null 2>&1; then refuses "locked' cannot be read" "${nobody[@]}" "$demo" "$scratch/locked"; fi
rmdir "$scratch/locked"
refuses "--threads" "$demo" "${small[@]}" --threads -1
refuses "a number of threads is 0 to" "$demo" "${small[@]}" --threads 1000
for program in "$demo ${small[*]}" "$plan"; do
  ends 2 "standard output cannot be written" bash -c "$program >/dev/full"
done
ends 0 "the peaks of all of them, in bytes" "$plan" --help
refuses "--steps requires POLICY" "$plan" vgg16 --steps
refuses "lrcnn: layer 1 .*too large" "$plan" vgg16 4294967296x3x65536x65536
refuses "lrcnn: layer 1 .*too large" "$plan" vgg16 1x3x2147483648x32
refuses "--epochs" "$demo" --epochs 0
refuses "--batch" "$demo" --batch 0
refuses "--policy" "$demo" --policy sideways
refuses "--policy excludes --budget" "$demo" --budget 1GB --policy row
refuses "no number of bytes: 'much'" "$demo" "${small[@]}" --budget much
refuses "a budget of 1.0 MB leaves nothing for a step .*; give a budget of [0-9]+ bytes or more" "$demo" "${small[@]}" --budget 1MB
refuses "lrcnn: " "$plan" alexnet
refuses "lrcnn: " "$plan" vgg16 1x3x0x224
left=$(find "$scratch" -name 'summary*')
[ -z "$left" ] || { printf 'FAILED: left behind: %s\n' "$left"; failures=$((failures + 1)); }
[ "$failures" -eq 0 ] && echo "every bad input was refused"
exit "$((failures > 0))"
