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
# So do photographs in a folder that is linked, here with a link back.
mkdir "$scratch/animals" "$scratch/photos" "$scratch/photos/dogs"
echo "a photograph" >"$scratch/animals/1.jpg"
ln -s ../animals "$scratch/photos/cats"
ln -s ../photos "$scratch/animals/back"
for file in photos/cats/1.jpg animals/1.jpg; do
  refuses "is to be written, and is in folder '.*photos', which is read" "$demo" "$scratch/photos" "${small[@]}" --summary "$scratch/$file"
done
[ "$(cat "$scratch/animals/1.jpg")" = "a photograph" ] || { echo "FAILED: a photograph was overwritten"; failures=$((failures + 1)); }
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
for asked in --steps --freeze "--html $scratch/page.html" "--svg $scratch/page.svg" "--slabs $scratch/page.svg"; do
  # shellcheck disable=SC2086 # an option and its value
  refuses "^lrcnn: no plan is named; pages, .* are of one plan; give a POLICY, or --budget$" "$plan" vgg16 $asked
done
refuses "lrcnn: layer 1 .*too large" "$plan" vgg16 4294967296x3x65536x65536
refuses "lrcnn: layer 1 .*too large" "$plan" vgg16 1x3x2147483648x32
refuses "--epochs" "$demo" --epochs 0
refuses "--batch" "$demo" --batch 0
refuses "--policy" "$demo" --policy sideways
refuses "--policy excludes --budget" "$demo" --budget 1GB --policy row
refuses "no number of bytes: 'much'" "$demo" "${small[@]}" --budget much
refuses "^lrcnn: a budget of 1.0 MB leaves nothing for a step on input 10x1x28x28, beside 1.3 MB of parameters and what belongs to them and .*\
; the fewest bytes that a plan was found for are [0-9]+, .*; give a budget of [0-9]+ bytes or more" "$demo" "${small[@]}" --budget 1MB
for bytes in 0 -5 2000T; do refuses "no number of bytes: '$bytes'; bytes are a number from 1 to 1000T" "$demo" "${small[@]}" --budget "$bytes"; done
refuses "--budget: the text behind it is empty; write one, or leave it out" "$demo" "${small[@]}" --budget ""
ends 0 "the budget of 100.0 TB is more than the .* that are free; a policy is chosen for all of the budget; " "$demo" "${small[@]}" --budget 100T
# Budgets and policies of plans.
vgg=("$plan" vgg11 1x3x64x64)
refuses "no number of bytes: '0'; " "${vgg[@]}" --budget 0
refuses "--budget: the text behind it is empty" "${vgg[@]}" --budget ""
refuses "leaves 100 B for a step on input 1x3x64x64; the fewest bytes that a plan was found for are ([0-9]+); use Fit<\1> or more" \
  "${vgg[@]}" --budget 100
refuses "POLICY excludes --budget" "${vgg[@]}" 'Policy<Fit<1_GiB>>' --budget 1GB
refuses "names 2 partitions; where sections end, and how many there are, is chosen, too; name one partition for all of them, or none$" \
  "${vgg[@]}" 'Policy<Fit<12_MiB>, Stages<Column, Column>>'
refuses "run by Policy<Fit<1073741824>, Images<1>>; statistics of a batch need all of its images" \
  "$plan" resnet18 2x3x64x64 'Policy<Fit<1_GiB>, Images<1>>'
refuses "checkpoint at layer 'nope', which the network does not have; " "${vgg[@]}" 'Policy<Fit<1_GiB>, CheckpointAt<"nope">>'
refuses "character 20 of policy .*: a part of this kind stands before it; each kind may be named once" "${vgg[@]}" 'Policy<Fit<1_GiB>, Fit<2>>'
refuses "character 12 of policy 'Policy<Fit<0>>': '0' is no number from 1 on; " "${vgg[@]}" 'Policy<Fit<0>>'
refuses "^lrcnn: --may-offload is given without bytes to fit into; .*; give --budget or --frontier, too$" "$plan" vgg11 1x3x64x64 --may-offload
refuses "no policy 'sideways'; there are: column .*; choose one of them$" "${vgg[@]}" sideways
refuses "character 8 of policy 'Policy<Overlapp<3>>': 'Overlapp' is not the name of a part of a policy; " "${vgg[@]}" 'Policy<Overlapp<3>>'
refuses "the description '.*nowhere.json' cannot be read; " "${vgg[@]}" column --device "$scratch/nowhere.json"
for asked in "vgg11 1x3x64x64 column --freeze" "vgg11 1x3x64x64 column --kernels" "vgg11 1x3x64x64 --frontier" "--graph nowhere.json --least"; do
  # shellcheck disable=SC2086 # arguments
  refuses "^(--steps excludes|--(freeze|kernels|frontier|graph) excludes --steps)" "$plan" --steps $asked
done
# Pages and drawings.
for option in --html --svg --slabs; do
  refuses "^lrcnn: file '.*missing/page' cannot be written: No such file or directory; .*; create its folder, or choose another path$" \
    "${vgg[@]}" column $option "$scratch/missing/page"
  refuses "^lrcnn: file '$scratch' cannot be written: Is a directory; .*; choose the name of a file$" "${vgg[@]}" column $option "$scratch"
  refuses "^lrcnn: file '/dev/full' cannot be written: " "${vgg[@]}" column $option /dev/full
  refuses "^$option: the text behind it is empty" "${vgg[@]}" column $option ""
done
refuses "page' is to be written twice; " "${vgg[@]}" column --html "$scratch/page" --svg "$scratch/./page"
echo "somebody's work" >"$scratch/kept"
refuses "has 'nope'|'nope', which" "${vgg[@]}" 'Policy<CheckpointAt<"nope">>' --html "$scratch/kept"
[ "$(cat "$scratch/kept")" = "somebody's work" ] || { echo "FAILED: a file was overwritten although there is no plan"; failures=$((failures + 1)); }
refuses "lrcnn: " "$plan" alexnet
refuses "lrcnn: " "$plan" vgg16 1x3x0x224
left=$(find "$scratch" -name 'summary*' -o -name 'page*')
[ -z "$left" ] || { printf 'FAILED: left behind: %s\n' "$left"; failures=$((failures + 1)); }
[ "$failures" -eq 0 ] && echo "every bad input was refused"
exit "$((failures > 0))"
