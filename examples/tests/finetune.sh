#!/usr/bin/env bash
# finetune.sh FINETUNE WRITE_PHOTOS: weights of a first training go into a network for other classes; what the program says of files that do
# not fit, and that these stay as they are.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/ends.sh"
finetune=$1 write=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
"$write" photos 8 || exit 1
few=(--size 64 --batch 4 --epochs 1 --images 16 --megabytes 64 --threads 2)
ends 0 'layer by layer .*|all, epoch 1: loss .*|Weights are in first.safetensors' "$finetune" "${few[@]}" --save first.safetensors
before=$(cksum first.safetensors)
ends 0 '100 tensors loaded; 2 parameters kept their values: fc.weight, fc.bias' "$finetune" photos "${few[@]}" --weights first.safetensors --save second.safetensors
ends 0 '^head, epoch 2: loss .* test accuracy' "$finetune" photos "${few[@]}" --weights first.safetensors --head-epochs 2
ends 0 'Nothing was missing' "$finetune" photos "${few[@]}" --weights second.safetensors
for text in 'in place of fc\.\*, the head' 'without parameters and optimizer' 'none without --weights, or where its file lacks nothing' \
  'without --weights with all of it'; do
  ends 0 "$text" "$finetune" --help
done
# One pattern at a time: what stands behind it is the folder.
some=("${few[@]}" --head-epochs 0 --weights first.safetensors)
ends 0 '100 tensors loaded; 2 parameters kept their values: fc.weight, fc.bias' "$finetune" "${some[@]}" --allow-missing 'fc.*' photos
ends 0 '100 tensors loaded; 2 parameters kept their values: fc.weight, fc.bias' "$finetune" "${some[@]}" --allow-missing 'fc.w*' --allow-missing \
  fc.bias photos
printf 'PK\003\004' >weights.pth
before_files=$(ls)
refuses "lrcnn: safetensors file 'weights.pth' is no safetensors file but a pickled one" "$finetune" photos "${few[@]}" --weights weights.pth
refuses "safetensors file 'nowhere' cannot be opened: No such file" "$finetune" photos "${few[@]}" --weights nowhere
refuses 'does not fit this network: 2 parameters have other shapes \(fc.bias \[10\] instead of \[3\], fc.weight \[10,512\] instead of \[3,512\]\)' \
  "$finetune" photos "${few[@]}" --weights first.safetensors --allow-missing 'bn1.*'
refuses "the pattern 'head.\*' of parameters that may be missing fits none" "$finetune" photos "${few[@]}" --weights first.safetensors --allow-missing 'head.*'
refuses 'parameters are missing \(layer1.0.conv3.weight' "$finetune" photos "${few[@]}" --weights first.safetensors --network resnet50
refuses "is to be written, and is read as well" "$finetune" photos "${few[@]}" --weights first.safetensors --save first.safetensors
refuses "does not exist; .* a folder for each class" "$finetune" none "${few[@]}"
[ "$(cksum first.safetensors)" = "$before" ] && [ "$(ls)" = "$before_files" ] || { echo "FAILED: files were changed or left behind"; failures=$((failures + 1)); }
[ "$failures" -eq 0 ]
