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
refuses "--epochs" "$demo" --epochs 0
refuses "--batch" "$demo" --batch 0
refuses "--policy" "$demo" --policy sideways
refuses "lrcnn: " "$plan" alexnet
refuses "lrcnn: " "$plan" vgg16 1x3x0x224
left=$(find "$scratch" -name 'summary*')
[ -z "$left" ] || { printf 'FAILED: left behind: %s\n' "$left"; failures=$((failures + 1)); }
[ "$failures" -eq 0 ] && echo "every bad input was refused"
exit "$((failures > 0))"
