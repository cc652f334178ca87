#!/usr/bin/env bash
# segmentation.sh SEGMENT WRITE_PHOTOGRAPH: the program on pictures that it writes itself; what it says to input it cannot use, the exit
# status, and that nothing is left behind.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/ends.sh"
segment=$1 write=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
small=(--crop 32 --batch 2 --steps 2 --threads 2)
ends 1 'No photograph was given.*|That is below 0\.9990' "$segment" "${small[@]}" --found mask.png --overlay overlay.png --at-least 0.999
[ "$(head -c 4 mask.png | tail -c 3)" = PNG ] && [ -s overlay.png ] || { echo "FAILED: no pictures"; failures=$((failures + 1)); }
ends 0 'Held out: rows 0 to 63, columns 32 to 127' "$segment" "${small[@]}" --found mask2.png --overlay overlay2.png --held-out 64x96+0+32
# A cache with room for hardly any tile gives the same.
ends 0 'Held-out region: IoU' "$segment" "${small[@]}" --found mask3.png --overlay overlay3.png --held-out 64x96+0+32 --cache 200k
cmp mask2.png mask3.png && cmp overlay2.png overlay3.png || { echo "FAILED: another cache, another picture"; failures=$((failures + 1)); }
"$write" photo.jpg 300 392 3 && "$write" other.jpg 300 400 3 && "$write" grey.jpg 300 392 1 || exit 1
# A mask in colours is white where its first channel is.
ends 0 "Picture: image 'photo.jpg', 300 rows of 392 pixels" "$segment" photo.jpg overlay.png "${small[@]}" --found mask4.png --overlay overlay4.png
head -c 200 mask2.png >cut.png
: >empty.png
mkdir folder

before=$(ls)
to=(--found none.png --overlay none2.png)
refuses "mask 'mask2.png' has 300 rows and 392 columns, and its image 'other.jpg' has 300 rows and 400 columns; .*give the image's own mask" \
  "$segment" other.jpg mask2.png "${small[@]}" "${to[@]}"
refuses "image 'nowhere.png' cannot be opened: No such file" "$segment" photo.jpg nowhere.png "${small[@]}" "${to[@]}"
refuses "image 'empty.png' is empty" "$segment" photo.jpg empty.png "${small[@]}" "${to[@]}"
refuses "image 'cut.png' is cut off or damaged in row [0-9]+ of 300" "$segment" photo.jpg cut.png "${small[@]}" "${to[@]}"
refuses "image 'nowhere.jpg' cannot be opened" "$segment" nowhere.jpg mask2.png "${small[@]}" "${to[@]}"
refuses "image 'grey.jpg' has 1 channel" "$segment" grey.jpg mask2.png "${small[@]}" "${to[@]}"
refuses 'IMAGE requires MASK' "$segment" photo.jpg "${small[@]}" "${to[@]}"
refuses "file 'missing/none.png' cannot be written" "$segment" "${small[@]}" --found missing/none.png --overlay none2.png
refuses "file 'folder' cannot be written" "$segment" "${small[@]}" --found none.png --overlay folder
refuses "file 'mask2.png' is to be written, and is read as well" "$segment" photo.jpg mask2.png "${small[@]}" --found mask2.png \
  --overlay none2.png
refuses "file 'none.png' is to be written twice" "$segment" "${small[@]}" --found none.png --overlay none.png
# Names that end with no format that can be written; nothing is on standard output, where the training would be told of.
for files in 'none.png none.jpg' 'none none2.png' 'none.gif none2.png'; do
  read -r found overlay <<<"$files"
  named=("$segment" "${small[@]}" --found "$found" --overlay "$overlay")
  refuses "^lrcnn: image 'none(.jpg|.gif)?' is to be written; its name ends with the format: .png, .npy, .tif or .tiff; choose such a name$" \
    "${named[@]}"
  [ -z "$("${named[@]}" 2>/dev/null)" ] || { echo "FAILED: $files was refused after the training"; failures=$((failures + 1)); }
done
for region in lots 10x10 10x10+0 0x10+0+0 10x10+0+383 301x10+0+0 10x10+-1+0 10x10+0+0+0 1000000000000000000000x1+0+0; do
  refuses "no region '${region//+/\\+}' of a picture of 300x392" "$segment" "${small[@]}" "${to[@]}" --held-out "$region"
done
refuses 'the whole object of .* is held out: rows 0 to 299' "$segment" "${small[@]}" "${to[@]}" --held-out 300x392+0+0
refuses "crops of 32x32 find no place in image 'drawn leaves'" "$segment" "${small[@]}" "${to[@]}" --held-out 290x392+0+0
refuses "crops of 304x304 find no place in image 'drawn leaves'" "$segment" "${to[@]}" --crop 304
refuses 'no crops of 40x40; the network halves a map four times' "$segment" "${to[@]}" --crop 40
refuses '--crop' "$segment" "${to[@]}" --crop 16
refuses "no number of bytes: 'much'" "$segment" "${small[@]}" "${to[@]}" --cache much
refuses "image 'drawn leaves' has tiles of 12288 bytes .*, and the tile cache holds 12000; .*give the cache more bytes" \
  "$segment" "${small[@]}" "${to[@]}" --cache 12000
refuses '--steps' "$segment" "${to[@]}" --steps 0
refuses '--at-least' "$segment" "${to[@]}" --at-least 2
refuses 'can(not)? be cut into 1000 slabs' "$segment" "${small[@]}" "${to[@]}" --slabs 1000
[ "$(ls)" = "$before" ] || { echo "FAILED: left behind: $(ls)"; failures=$((failures + 1)); }

# A real photograph with its mask, where LRCNN_DATA names a folder that has them.
real=${LRCNN_DATA:-}/large/plant-2454x2056
if [ -n "${LRCNN_DATA:-}" ] && [ -e "$real.jpg" ]; then
  ends 0 'Held-out region: IoU 0' "$segment" "$real.jpg" "$real-mask.png" --crop 128 --steps 80 --at-least 0.7 "${to[@]}"
else
  echo "skipped: set LRCNN_DATA to a folder that has large/plant-2454x2056.jpg and its mask"
fi
[ "$failures" -eq 0 ] && echo "every picture was taken or refused as it should be"
exit "$((failures > 0))"
