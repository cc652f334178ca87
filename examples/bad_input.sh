#!/usr/bin/env bash
# bad_input.sh DEMO PLAN: what the programs say to input they cannot use, the exit status, and that nothing is left behind.
set -u
demo=$1 plan=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
# refuses STATUS TEXT COMMAND...: the command ends with STATUS and says TEXT.
refuses() {
  local status=$1 text=$2 said got=0
  shift 2
  said=$("$@" 2>&1) || got=$?
  if [ "$got" -ne "$status" ] || ! grep -qF -- "$text" <<<"$said"; then
    printf 'FAILED: %s\n  status %s, wanted %s\n  wanted: %s\n  said: %s\n' "$*" "$got" "$status" "$text" "$said"
    failures=$((failures + 1))
  fi
}
small=(--epochs 1 --images 40 --batch 10)
refuses 2 "nowhere' " "$demo" "$scratch/nowhere"
mkdir "$scratch/empty"
refuses 2 "empty' " "$demo" "$scratch/empty"
mkdir "$scratch/cut"
printf 'not a data file' >"$scratch/cut/train-images-idx3-ubyte"
printf 'not a data file' >"$scratch/cut/train-labels-idx1-ubyte"
refuses 2 "an IDX file of labels begins with 2049" "$demo" "$scratch/cut"
refuses 2 "$scratch/missing/summary.json" "$demo" "${small[@]}" --summary "$scratch/missing/summary.json"
refuses 2 "--epochs" "$demo" --epochs 0
refuses 2 "--batch" "$demo" --batch 0
refuses 2 "--policy" "$demo" --policy sideways
refuses 2 "lrcnn: " "$plan" alexnet
refuses 2 "lrcnn: " "$plan" vgg16 1x3x0x224
left=$(find "$scratch" -name 'summary*')
[ -z "$left" ] || { printf 'FAILED: left behind: %s\n' "$left"; failures=$((failures + 1)); }
[ "$failures" -eq 0 ] && echo "every bad input was refused"
exit "$((failures > 0))"
