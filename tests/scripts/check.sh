#!/usr/bin/env bash
# check.sh REPOSITORY  exercises scripts/lib.sh with stand-ins for the programs that would change the machine.
set -euo pipefail
cd "$1"
commands=(scripts/test scripts/demo scripts/bench .ci/run)
fail() { printf 'failed: %s\n' "$*"; exit 1; }
for file in "${commands[@]}" scripts/lib.sh; do bash -n "$file"; done
for file in "${commands[@]}"; do [ -x "$file" ] || fail "$file is not executable"; done
if command -v shellcheck >/dev/null; then shellcheck -x "${commands[@]}" scripts/lib.sh; fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
stand_in() { printf '#!/bin/sh\n%s\n' "$2" >"$folder/$1"; chmod +x "$folder/$1"; }
# lib COMMAND...  runs something of lib.sh with the stand-ins; no_such_package is never there.
lib() { PATH="$folder:$PATH" bash -c '. scripts/lib.sh; "$@"' lib "$@" 2>&1; }
stand_in dpkg-query 'exit 1'
stand_in apt-get 'echo "apt-get $*"'

stand_in id 'echo 1000'
stand_in sudo 'exit 1'
output=$(lib install_needed no-such-package:no-such-command)
[[ $output == *"may not install packages here"*"apt-get install"*no-such-package* ]] || fail "without rights: $output"
[[ $output != *"apt-get -q"* ]] || fail "installed without rights: $output"

stand_in sudo 'if [ "$1" = -n ]; then shift; fi; echo "sudo $*"; "$@"'
output=$(lib install_needed no-such-package:no-such-command)
[[ $output == *"sudo env "*"apt-get -q update"*"apt-get -q install"*no-such-package* ]] || fail "with sudo: $output"

stand_in id 'echo 0'
output=$(lib install_needed no-such-package:no-such-command)
[[ $output == *"apt-get -q update"*"apt-get -q install"*no-such-package* && $output != *sudo* ]] || fail "as root: $output"

stand_in apt-get 'exit 100'
output=$(lib install_needed no-such-package:no-such-command)
[[ $output == *"apt-get failed"*no-such-package* ]] || fail "apt-get fails: $output"

rm "$folder"/*
output=$(PATH=$folder /bin/bash -c 'dirname() { echo scripts; }; . scripts/lib.sh; id() { echo 1000; }
  install_needed' 2>&1) && fail "built without tools: $output"
[[ $output == *"not a Debian system; lacking"*"cannot build without: g++ cmake ninja-build"* ]] || fail "bare: $output"
echo "scripts: all checks passed"
