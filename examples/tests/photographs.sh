#!/usr/bin/env bash
# photographs.sh LARGE_IMAGE PREDICT_IMAGE WRITE_PHOTOGRAPH: the programs on small photographs; what they say to input they cannot use,
# the exit status, and that nothing is left behind.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/ends.sh"
large=$1 predict=$2 write=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
photo=$scratch/photo.jpg map=$scratch/map.png
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
[ "$(od -An -tu1 -j16 -N8 "$map" | xargs)" = "0 0 0 4 0 0 0 5" ] || { echo "FAILED: $map is no PNG file of 4x5"; failures=$((failures + 1)); }
cp "$map" "$scratch/fine.png"
ends 0 'Output: 5 rows of 4, handed over in 1 parts' "$predict" "$photo" "$map" --slabs 1
cmp "$map" "$scratch/fine.png" || { echo "FAILED: twenty slabs and one differ"; failures=$((failures + 1)); }
refuses 'cannot be cut into 1000 slabs|no stage can be cut into 1000 slabs' "$predict" "$photo" "$map" --slabs 1000
refuses '--slabs' "$predict" "$photo" "$map" --slabs 0
refuses '--threads' "$predict" "$photo" "$map" --threads 0
refuses "file '$scratch/missing/map.png' cannot be written" "$predict" "$photo" "$scratch/missing/map.png"
refuses "its name ends with the format: .png, .npy, .tif or .tiff" "$predict" "$photo" "$scratch/map.pgm"

# The same photograph in other formats, and the same averages in others.
for format in png tif npy; do
  "$write" "$scratch/photo.$format" 160 128 3 || exit 1
  ends 0 'Output: 5 rows of 4, handed over in [2-5] parts' "$predict" "$scratch/photo.$format" "$scratch/of-$format.npy" --slabs 20
  cmp "$scratch/of-png.npy" "$scratch/of-$format.npy" || { echo "FAILED: png and $format differ"; failures=$((failures + 1)); }
done
[ "$(wc -c <"$scratch/of-png.npy")" = $((128 + 4 * 20)) ] || { echo "FAILED: no 20 numbers of 4 bytes"; failures=$((failures + 1)); }
ends 0 'Output: 5 rows of 4' "$predict" "$photo" "$scratch/averages.tif"
ends 0 'Image: 128 rows of 96 pixels' "$predict" "$photo" "$map" --region 128x96+32+16
"$write" "$scratch/part.tif" 160 128 4 || exit 1   # red, green, blue and a fourth channel, which is left out
ends 0 'Image: 160 rows of 128 pixels' "$predict" "$scratch/part.tif" "$scratch/of-four.npy" --slabs 20
cmp "$scratch/of-png.npy" "$scratch/of-four.npy" || { echo "FAILED: a fourth channel is not left out"; failures=$((failures + 1)); }
ends 0 'gradients (differ by at most|are equal)' "$large" "$scratch/photo.tif" --crop 64 --threads 2 --limit 200M --cache 1M
for region in lots 10x10 160x128+1+0 0x10+0+0; do
  refuses "no region '${region//+/\\+}' of an image of 160x128" "$predict" "$photo" "$map" --region "$region"
done
refuses "slide '$photo' is of no format that OpenSlide knows" "$predict" "$photo" "$map" --level 0
refuses "has tiles of [0-9]+ bytes .*, and the tile cache holds 1000; " "$large" "$photo" --cache 1k

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
  [ "$program" = "$large" ] || more=("$scratch/none.png")
  refuses "image '.*nowhere.jpg' cannot be opened: No such file" "$program" "$scratch/nowhere.jpg" "${more[@]}"
  refuses "image '.*folder' is a folder; an image is one file" "$program" "$scratch/folder" "${more[@]}"
  refuses "image '.*other.jpg' is of no format that this program reads; it reads whole-slide images, TIFF, PNG, JPEG, NumPy; " \
    "$program" "$scratch/other.jpg" "${more[@]}"
  refuses "image '.*grey.jpg' has 1 channel \(grey\); the network reads three" "$program" "$scratch/grey.jpg" "${more[@]}"
  refuses "image '.*cut.jpg' is cut off or damaged in row [0-9]+ of 160: Premature end of JPEG file" "$program" "$scratch/cut.jpg" "${more[@]}"
  refuses 'lrcnn: layer [0-9]+ ' "$program" "$scratch/low.jpg" "${more[@]}"
done
[ "$(ls "$scratch")" = "$before" ] || { echo "FAILED: left behind: $(ls "$scratch")"; failures=$((failures + 1)); }

# Real ones, where LRCNN_DATA names a folder that has them.
real=${LRCNN_DATA:-}/large/plant-2454x2056.jpg
if [ -n "${LRCNN_DATA:-}" ] && [ -e "$real" ]; then
  ends 0 'Photograph: 320 rows of 256 pixels' "$large" "$real" --part 320x256 --crop 96
  ends 0 'Image: 320 rows of 256 pixels \(slide \(aperio\), level 0 of 1, tiles of 240x240\)' \
    "$predict" "${real%/*}/CMU-1-Small-Region.svs" "$map" --level 0 --region 320x256+1000+700
else
  echo "skipped: set LRCNN_DATA to a folder that has large/plant-2454x2056.jpg and others"
fi
[ "$failures" -eq 0 ] && echo "every photograph was taken or refused as it should be"
exit "$((failures > 0))"
