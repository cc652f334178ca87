#!/usr/bin/env bash
# check.sh REPOSITORY  exercises scripts/lib.sh with stand-ins for the programs that would change the machine.
set -euo pipefail
cd "$1"
commands=(.ci/run)
for file in scripts/*; do [ "$file" = scripts/lib.sh ] || [ -d "$file" ] || commands+=("$file"); done
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

# The same with a .deps of its own. The stand-in for pip makes a wheel with one header.
with_deps() { PATH="$folder:$PATH" bash -c '. scripts/lib.sh; deps=$0; "$@"' "$folder/deps" "$@" 2>&1; }
fetch=(fetch_headers thing thing-devel CUDNN_FRONTEND thing/thing.h)
include=$folder/deps/thing/include/thing/thing.h
stand_in python3 'for last; do :; done
case "$*" in
  *download*) while [ "$1" != -d ]; do shift; done; echo "$last" >"$2/thing.whl" ;;
  *zipfile*) mkdir -p "$last/a/include/thing"; cp "$4" "$last/a/include/thing/thing.h" ;;
esac'
output=$(with_deps "${fetch[@]}") || fail "fetching: $output"
grep -q '^thing-devel==[0-9.]*$' "$include" || fail "fetched something else: $(cat "$include")"
stand_in python3 '[ "$3" = --version ] || { echo "no network"; exit 1; }'
output=$(with_deps "${fetch[@]}") || fail "fetched again what is there: $output"
echo 0.1 >"$folder/deps/thing/version"
if output=$(with_deps "${fetch[@]}"); then fail "took an old version for the right one: $output"; fi
[[ $output == *"could not fetch thing-devel"*"no network"* ]] || fail "fetching fails: $output"
[ -e "$include" ] && [ "$(ls "$folder/deps")" = thing ] || fail "a fetch that failed left: $(ls "$folder/deps")"
# Without a folder of its own nothing is written anywhere, to /log, say.
stand_in mktemp 'echo "mktemp: no room" >&2; exit 1'
for what in "${fetch[*]}" fetch_aarch64 "copy_debian libc6-dev"; do
  # shellcheck disable=SC2086 # a command and its arguments
  if output=$(with_deps $what); then fail "$what without a folder"; fi
  [ "$output" = "mktemp: no room" ] || fail "$what without a folder: $output"
done
rm "$folder/mktemp"
stand_in dpkg-query 'if [ "$2" = gone ]; then exit 1; fi; printf "/usr/%s\n" include include/stdio.h share/doc'
output=$(with_deps copy_debian libc6-dev gone) || fail "copying: $output"
[[ $output == "not installed here, so not copied: gone" ]] || fail "copying: $output"
[ "$(cd "$folder/deps/debian" && find . -type f)" = ./include/stdio.h ] || fail "copied: $(find "$folder/deps/debian")"

# PyTorch, into an environment of its own: said beforehand; made once; a failure says what to do.
stand_in python3 'mkdir -p "$3/bin"; cp "$0.venv" "$3/bin/python"'
stand_in python3.venv 'echo "pip $*"'
output=$(with_deps fetch_pytorch) || fail "installing PyTorch: $output"
[[ $output == *"5 GB on disk"*"pip -m pip install "*requirements.txt* ]] || fail "installing PyTorch: $output"
output=$(with_deps fetch_pytorch) && [ -z "$output" ] || fail "installed PyTorch again: $output"
rm "$folder/deps/peers/installed"
stand_in python3.venv 'echo "no network"; exit 1'
if output=$(with_deps fetch_pytorch); then fail "took a failure for PyTorch: $output"; fi
[[ $output == *"no network"*"could not install PyTorch"*LRCNN_PEERS_PYTHON* ]] || fail "PyTorch fails: $output"
[ ! -e "$folder/deps/peers/installed" ] || fail "a failure left PyTorch as installed"
# Files that cannot be written are refused before anything is built.
rm "$folder"/python3*
for bench in "scripts/bench" "scripts/bench --peers"; do
  for file in "$folder/nowhere/out.json" "$folder/deps"; do
    if output=$(PATH="$folder:$PATH" $bench --json "$file" 2>&1); then fail "$bench took $file"; fi
    [[ $output == *"error: cannot write $file; "*"choose another file"* && $output != *building* ]] || fail "$bench $file: $output"
  done
  if output=$(PATH="$folder:$PATH" $bench --busy 2>&1); then fail "$bench took no number"; fi
  [[ $output == "error: --busy needs a value; write it as in --busy=VALUE" ]] || fail "$bench --busy: $output"
done

# The rest runs in a copy of the repository, on a machine that has everything: with stand-ins for CMake and for the programs that it would build.
copy=$folder/copy
mkdir -p "$copy/scripts" "$copy/build/release/bench" "$copy/build/gpu/bench" "$folder/caller"
for command in scripts/*; do [ -d "$command" ] || cp "$command" "$copy/scripts"; done
# Help ends at once: it looks for no package, and installs, fetches, builds and writes nothing.
programs=(dpkg-query apt-get sudo id cmake ctest ninja g++ nvcc python3)
for tool in "${programs[@]}"; do stand_in "$tool" "echo $tool \$* >>'$folder/log'"; done
for command in "$copy"/scripts/*; do
  command=${command##*/}
  [ "$command" != lib.sh ] || continue
  for arguments in --help -h "--other --help" "name -h"; do
    # shellcheck disable=SC2086 # arguments
    output=$(cd "$folder/caller" && PATH="$folder:$PATH" OUT="$folder/caller/out" "$copy/scripts/$command" $arguments 2>&1) ||
      fail "scripts/$command $arguments: $output"
    [[ $output == "scripts/$command"* && $output == *"scripts/$command "*"--help"* && $output != *\#* && $output != *here=* ]] ||
      fail "scripts/$command $arguments: $output"
    [ ! -e "$folder/log" ] || fail "scripts/$command $arguments ran $(cat "$folder/log")"
  done
done
[ -z "$(ls "$folder/caller")" ] && [ ! -e "$copy/.deps" ] || fail "help left something: $(ls -A "$folder/caller" "$copy")"
if output=$(cd "$folder/caller" && PATH="$folder:$PATH" "$copy/scripts/deps" other 2>&1); then fail "scripts/deps took an argument"; fi
[[ $output == "error: scripts/deps takes no arguments, not other; "*--help ]] && [ ! -e "$folder/log" ] || fail "scripts/deps other: $output"
for tool in "${programs[@]}"; do rm "$folder/$tool"; done
stand_in apt-get 'exit 100'
stand_in id 'echo 0'
stand_in dpkg-query 'echo installed'
for tool in g++ cmake ninja ctest nvcc; do stand_in $tool "echo $tool \$* >>'$folder/log'"; done
# copied COMMAND...  runs a command of the copy in the caller's folder.
copied() { (unset OUT; cd "$folder/caller" && PATH="$folder:$PATH" "$copy/$@" 2>&1); }
for arguments in --help -h "--peers --help" "--weights -h" "--import --help" "--images --help" "--json results.json --help"; do
  # shellcheck disable=SC2086 # arguments
  output=$(copied scripts/bench $arguments) || fail "scripts/bench $arguments: $output"
  [[ $output == "scripts/bench [REGEX] "*"scripts/bench --peers "*"scripts/bench --import "* && $output != *\#* && $output != *here=* ]] ||
    fail "scripts/bench $arguments: $output"
done
[ ! -e "$folder/log" ] && [ -z "$(ls "$folder/caller")" ] || fail "help built or left something: $(cat "$folder/log"; ls "$folder/caller")"
# What an earlier run has measured stays where nothing is measured.
stand_in copy/build/release/bench/lrcnn_bench 'case $* in *list*) ;; *) for a; do case $a in --benchmark_out=*) echo new >"${a#*=}" ;; esac; done ;; esac'
echo old >"$folder/caller/results.json"
output=$(copied scripts/bench --json results.json --benchmark_list_tests) || fail "listing: $output"
[[ $output == *"nothing was measured, so nothing was written to $folder/caller/results.json" ]] || fail "listing: $output"
[ "$(cd "$folder/caller" && cat results.json && ls)" = "old"$'\n'"results.json" ] || fail "a list took the place of results"
output=$(copied scripts/bench --json results.json) && [ "$(cat "$folder/caller/results.json")" = new ] || fail "measuring: $output"
# Relative folders are the caller's.
stand_in peers_python 'echo "$PWD $*"'
output=$(LRCNN_PEERS_PYTHON=$folder/peers_python copied scripts/bench --import --keep kept)
[ "$output" = "$folder/caller -B $copy/bench/peers/import.py --keep kept" ] || fail "scripts/bench --import: $output"
# Tests and benchmark of a GPU: built before each, and figures of an earlier run are none of this one's.
results=$copy/build/gpu-results
stand_in copy/build/gpu/bench/lrcnn_gpu_bench 'echo figures'
mkdir -p "$copy/build/gpu/tests"
stand_in copy/build/gpu/tests/test_cudnn.gpu 'exit 0'
stand_in python3 'case $1 in bench/gpu/table.py) ls "$2" ;; *) exit 1 ;; esac'
mkdir -p "$results"
touch "$results"/{pytorch.txt,pytorch.json,table.md}
for command in test bench; do
  rm -f "$folder/log"
  output=$(copied scripts/gpu $command) || fail "scripts/gpu $command: $output"
  grep -q '^cmake --build --preset gpu ' "$folder/log" || fail "scripts/gpu $command built nothing: $(cat "$folder/log")"
done
[[ $output == *"no PyTorch here"*lrcnn.txt* && $output != *pytorch.* ]] || fail "older figures: $output"
# A profile wants the library that notes kernels, and a case that starts some.
if output=$(copied scripts/gpu profile); then fail "scripts/gpu profile without its library: $output"; fi
[[ $output == *"error: the build made no profiler; "*build.txt* ]] || fail "scripts/gpu profile without its library: $output"
touch "$copy/build/gpu/bench/liblrcnn_gpu_profile.so" "$results/kernels.txt"
if output=$(copied scripts/gpu profile none); then fail "scripts/gpu profile of nothing: $output"; fi
[[ $output == *"error: no kernel was noted; "* ]] || fail "scripts/gpu profile of nothing: $output"
stand_in copy/build/gpu/bench/lrcnn_gpu_bench 'echo "$CUDA_INJECTION64_PATH $*" >"$LRCNN_PROFILE"'
stand_in python3 'case $1 in bench/profile/table.py) cat "$2" ;; *) exit 1 ;; esac'
output=$(copied scripts/gpu profile) || fail "scripts/gpu profile: $output"
[[ $output == *"/build/gpu/bench/liblrcnn_gpu_profile.so --filter resnet50 224x32 bf16 column\$" ]] || fail "scripts/gpu profile: $output"
# Tests that would all be skipped, or are not there, are an error, before any is started.
rm -f "$folder/log"
stand_in copy/build/gpu/tests/test_cudnn.gpu 'echo "lrcnn skips: no CUDA device: the driver is too old"; exit 77'
if output=$(copied scripts/gpu test); then fail "scripts/gpu test without a GPU: $output"; fi
[[ $output == *"error: no test can run: lrcnn skips: no CUDA device: the driver is too old" ]] || fail "scripts/gpu test without a GPU: $output"
grep -q '^ctest' "$folder/log" && fail "scripts/gpu test without a GPU started tests"
rm "$copy/build/gpu/tests/test_cudnn.gpu"
if output=$(copied scripts/gpu test); then fail "scripts/gpu test without tests: $output"; fi
[[ $output == *"error: the build made no tests for a GPU; "* ]] || fail "scripts/gpu test without tests: $output"

rm -r "${folder:?}"/*
output=$(PATH=$folder /bin/bash -c 'dirname() { echo scripts; }; . scripts/lib.sh; id() { echo 1000; }
  install_needed' 2>&1) && fail "built without tools: $output"
[[ $output == *"not a Debian system; lacking"*"cannot build without: g++ cmake ninja-build"* ]] || fail "bare: $output"
echo "scripts: all checks passed"
