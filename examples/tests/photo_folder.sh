#!/usr/bin/env bash
# photo_folder.sh DEMO WRITE_PHOTOS: the demo on a folder of photographs; what it says of folders that it cannot use, and that they stay as they are.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/ends.sh"
demo=$1 write=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
photos=$scratch/photos
"$write" "$photos" 24 || exit 1
few=(--epochs 1 --images 30 --batch 10 --size 28 --threads 2)
before=$(cat "$photos"/*/* | cksum)
# A real training: the kinds differ much.
ends 0 "'$photos', training, classes checks, discs, stripes: 60 images 3x32x32, 3 classes" "$demo" "$photos" --epochs 12 --size 32 --summary "$scratch/summary.json"
accuracy=$(sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$scratch/summary.json")
awk -v a="${accuracy:-0}" 'BEGIN {exit !(a >= 0.6)}' || { echo "FAILED: test accuracy ${accuracy:-none}, a third comes by chance"; failures=$((failures + 1)); }
ends 0 "training, classes checks, discs, stripes: 30 images 3x28x28, 3 classes" "$demo" "$photos" "${few[@]}"
# Parts in folders of their own.
mkdir "$scratch/parts"
cp -r "$photos" "$scratch/parts/train"
cp -r "$photos" "$scratch/parts/val"
rm "$scratch"/parts/val/*/picture1*
ends 0 "'$scratch/parts/val', test, classes checks, discs, stripes: 5 images" "$demo" "$scratch/parts" "${few[@]}"
# What cannot be used.
for where in "$photos/summary.json" "$photos/discs/summary.json"; do
  touch "$where"
  refuses "is to be written, and is in folder '$photos', which is read" "$demo" "$photos" "${few[@]}" --summary "$where"
  rm "$where"
done
[ "$(cat "$photos"/*/* | cksum)" = "$before" ] || { echo "FAILED: a photograph was changed"; failures=$((failures + 1)); }
printf 'not a picture' >"$photos/checks/odd.png"
printf 'not a picture' >"$photos/checks/odd2.png"
refuses "^lrcnn: image '$photos/checks/odd2?.png' is of no format that this program reads; it reads JPEG, PNG, TIFF; " "$demo" "$photos" --epochs 1
ends 0 "^Left out: lrcnn: image '$photos/checks/odd.png' is of no format" "$demo" "$photos" --epochs 1 --size 28 --skip-damaged
mkdir "$photos/empty"
refuses "^lrcnn: class folder '$photos/empty' has no pictures; " "$demo" "$photos" "${few[@]}"
mkdir "$scratch/single"
cp -r "$scratch/parts/val/discs" "$scratch/single/"
refuses "^lrcnn: folder '$scratch/single' has one class only, 'discs'; " "$demo" "$scratch/single" "${few[@]}"
refuses "has no data set that lrcnn knows; .* a folder of pictures for each class is another kind" "$demo" "$scratch/single/discs" "${few[@]}"
refuses "^--size: Value 27 not in range" "$demo" "$photos" --size 27
[ "$failures" -eq 0 ]
