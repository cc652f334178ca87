#!/usr/bin/env bash
# photographs.sh LARGE_IMAGE PREDICT_IMAGE WRITE_JPEG: the programs on small photographs; what they say to input they cannot use,
# the exit status, and that nothing is left behind.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/ends.sh"
large=$1 predict=$2 write=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
photo=$scratch/photo.jpg map=$scratch/map.pgm
"$write" "$photo" 160 128 3 || exit 1
"$write" "$scratch/grey.jpg" 64 64 1 || exit 1
"$write" "$scratch/low.jpg" 16 64 3 || exit 1
head -c 1500 "$photo" >"$scratch/cut.jpg"
printf '\x89PNG not a JPEG file' >"$scratch/other.jpg"
mkdir "$scratch/folder"

small=("$large" "$photo" --crop 64 --threads 2)
ends 0 'gradients (differ by at most|are equal)' "${small[@]}"
ends 0 'Planned peak: layer by layer .* by rows .* Measured: [0-9.]+ MB' "${small[@]}" --limit 200M
ends 0 'Photograph: 128 rows of 96 pixels' "${small[@]}" --part 128x96
refuses "the smallest is Policy<Stages<(Share|Overlap)<.* with [0-9.]+ MB; .*give --limit [0-9]+ or more" "${small[@]}" --limit 1M
for bytes in lots 0 -5 3X 12MM 1e3 ''; do refuses "no number of bytes: '$bytes'|--limit requires" "${small[@]}" --limit "$bytes"; done
refuses '--threads' "$large" "$photo" --threads 0
refuses '--threads' "$large" "$photo" --threads 100000
refuses "no part '4x4' of a photograph of 160x128" "$large" "$photo" --part 4x4
refuses "no part 'half'" "$large" "$photo" --part half
refuses "no part '161x32'" "$large" "$photo" --part 161x32
refuses 'IMAGE' "$large"

ends 0 'Output: 5 rows of 4, handed over in [2-5] parts' "$predict" "$photo" "$map" --slabs 20
[ "$(head -c 7 "$map")" = "$(printf 'P5\n4 5')" ] || { echo "FAILED: $map is no picture of 4x5"; failures=$((failures + 1)); }
cp "$map" "$scratch/fine.pgm"
ends 0 'Output: 5 rows of 4, handed over in 1 parts' "$predict" "$photo" "$map" --slabs 1
cmp "$map" "$scratch/fine.pgm" || { echo "FAILED: twenty slabs and one differ"; failures=$((failures + 1)); }
refuses 'cannot be cut into 1000 slabs|no stage can be cut into 1000 slabs' "$predict" "$photo" "$map" --slabs 1000
refuses '--slabs' "$predict" "$photo" "$map" --slabs 0
refuses '--threads' "$predict" "$photo" "$map" --threads 0
refuses "file '$scratch/missing/map.pgm' cannot be written" "$predict" "$photo" "$scratch/missing/map.pgm"

# What a program reads stays as it is, whatever it is called.
ln "$photo" "$scratch/other-name.jpg"
cp "$photo" "$scratch/kept.jpg"
for file in "$photo" "$scratch/folder/../photo.jpg" "$scratch/other-name.jpg"; do
  refuses "is to be written, and is read as well" "$predict" "$photo" "$file" --slabs 1
done
cmp "$photo" "$scratch/kept.jpg" || { echo "FAILED: the photograph was overwritten"; failures=$((failures + 1)); }

before=$(ls "$scratch")
for program in "$large" "$predict"; do
  more=()
  [ "$program" = "$large" ] || more=("$scratch/none.pgm")
  refuses "photograph '.*nowhere.jpg' cannot be opened: No such file" "$program" "$scratch/nowhere.jpg" "${more[@]}"
  refuses "photograph '.*folder' is a folder; a photograph is one file" "$program" "$scratch/folder" "${more[@]}"
  refuses "photograph '.*other.jpg' cannot be decoded: Not a JPEG file" "$program" "$scratch/other.jpg" "${more[@]}"
  refuses "photograph '.*grey.jpg' has 1 channel \(grey\); the network reads three" "$program" "$scratch/grey.jpg" "${more[@]}"
  refuses "photograph '.*cut.jpg' is cut off or damaged in row [0-9]+ of 160: Premature end of JPEG file" "$program" "$scratch/cut.jpg" "${more[@]}"
  refuses 'lrcnn: layer [0-9]+ ' "$program" "$scratch/low.jpg" "${more[@]}"
done
[ "$(ls "$scratch")" = "$before" ] || { echo "FAILED: left behind: $(ls "$scratch")"; failures=$((failures + 1)); }

# A real photograph, where LRCNN_DATA names a folder that has one.
real=${LRCNN_DATA:-}/large/plant-2454x2056.jpg
if [ -n "${LRCNN_DATA:-}" ] && [ -e "$real" ]; then
  ends 0 'Photograph: 320 rows of 256 pixels' "$large" "$real" --part 320x256 --crop 96
else
  echo "skipped: set LRCNN_DATA to a folder that has large/plant-2454x2056.jpg"
fi
[ "$failures" -eq 0 ] && echo "every photograph was taken or refused as it should be"
exit "$((failures > 0))"
