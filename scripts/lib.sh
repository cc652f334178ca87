# shellcheck shell=bash
# Shared by the commands in this folder; sourced, not run.
# Needs bash; leaves the caller in the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# What is needed, as "Debian package: command or header that shows it is there". A thing that was installed by other
# means than apt counts as well.
readonly tools=(g++:g++ cmake:cmake ninja-build:ninja)
readonly libraries=(libdnnl-dev:oneapi/dnnl/dnnl.hpp zlib1g-dev:zlib.h nlohmann-json3-dev:nlohmann/json.hpp
  libcli11-dev:CLI/CLI.hpp libbenchmark-dev:benchmark/benchmark.h doctest-dev:doctest/doctest.h)
# shellcheck disable=SC2034
readonly checkers=(clang:clang++ libomp-dev: python3:python3 python3-venv: ca-certificates:)  # for scripts/test

# there PACKAGE:PROBE
there() {
  local package=${1%%:*} probe=${1#*:} prefix
  case $probe in
    '') ;;
    *.h | *.hpp) for prefix in /usr/include /usr/local/include; do [ ! -e "$prefix/$probe" ] || return 0; done ;;
    *) ! command -v "$probe" >/dev/null 2>&1 || return 0 ;;
  esac
  command -v dpkg-query >/dev/null 2>&1 &&
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ]
}

# missing PACKAGE:PROBE...  prints the packages that are not there
missing() {
  local entry
  for entry in "$@"; do there "$entry" || printf '%s ' "${entry%%:*}"; done
}

# install_packages PACKAGE...  one by one if all at once fails, so that an unknown package costs only itself.
install_packages() {
  local package ok=0 apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q)
  [ "$(id -u)" = 0 ] || apt=(sudo "${apt[@]}")
  "${apt[@]}" update >&2 || ok=1
  if ! "${apt[@]}" install -y --no-install-recommends "$@" >&2; then
    for package in "$@"; do "${apt[@]}" install -y --no-install-recommends "$package" >&2 || ok=1; done
  fi
  return $ok
}

# install_needed PACKAGE:PROBE...  installs what is missing of tools, libraries and these, if this user may; else says
# what is lacking. Goes on without libraries, because CMake leaves out and names what it cannot build; not without tools.
install_needed() {
  local lacking
  set -- "${tools[@]}" "${libraries[@]}" "$@"
  lacking=$(missing "$@")
  if [ -n "$lacking" ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
      say "this is not a Debian system; lacking, under Debian's names: $lacking"
    elif [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
      say "may not install packages here (neither root nor sudo without a password); lacking: $lacking"
      say "ask an administrator for: apt-get install $lacking"
    else
      say "installing: $lacking"
      # shellcheck disable=SC2086
      install_packages $lacking || say "apt-get failed (its messages are above); lacking: $(missing "$@")"
    fi
  fi
  lacking=$(missing "${tools[@]}")
  [ -z "$lacking" ] || die "cannot build without: $lacking"
}

# Fetches the headers of oneDNN 3 into .deps/onednn3/include for a compile check. Debian's pip may not install outside a
# virtual environment, but may download; a machine without pip gets one from python3-venv.
fetch_onednn3() {
  local version folder pip=(python3 -m pip) headers
  [ ! -e .deps/onednn3/include/oneapi/dnnl/dnnl.hpp ] || return 0
  version=$(sed -n 's/^set(LRCNN_ONEDNN3_VERSION \([^ )]*\)).*/\1/p' cmake/LrcnnDependencies.cmake)
  mkdir -p .deps
  folder=$(mktemp -d .deps/fetch.XXXXXX)
  if ! "${pip[@]}" --version >/dev/null 2>&1; then
    python3 -m venv "$folder/venv" >/dev/null 2>&1 || true
    pip=("$folder/venv/bin/python" -m pip)
  fi
  # The headers are the same for every processor; the platform is named so that others than x86-64 get them too.
  if "${pip[@]}" download -q --no-deps --only-binary=:all: --platform manylinux_2_28_x86_64 -d "$folder" \
    "onednn-devel==$version" >"$folder/log" 2>&1 && python3 -m zipfile -e "$folder"/onednn_devel-*.whl "$folder/wheel" &&
    headers=$(dirname "$(find "$folder/wheel" -path '*/include/oneapi' -print -quit)") &&
    [ -e "$headers/oneapi/dnnl/dnnl.hpp" ]; then
    mkdir -p .deps/onednn3
    rm -rf .deps/onednn3/include
    mv "$headers" .deps/onednn3/include  # last, so that a cut-off run leaves nothing that looks complete
  else
    say "could not fetch onednn-devel $version from PyPI; the check against oneDNN 3 will be missing:"
    sed 's/^/    /' "$folder/log" >&2 2>/dev/null || true
  fi
  rm -rf "$folder"
}

# As many compilers at once as there are processors, and memory for at 2 GB each.
compilers_at_once() {
  local processors memory
  processors=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 2000000)}' /proc/meminfo 2>/dev/null || true)
  if [ "${memory:-0}" -ge 1 ] && [ "$memory" -lt "$processors" ]; then echo "$memory"; else echo "$processors"; fi
}

# build PRESET [TARGET...]  configures and builds quietly; a failure shows everything.
build() {
  local preset=$1 target log targets=()
  shift
  for target in "$@"; do targets+=(--target "$target"); done
  mkdir -p build
  log=build/$preset.configure.log
  say "configuring build/$preset"
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    die "configuring failed; a stale build/$preset may be the reason, and can be removed"
  fi
  grep '^-- lrcnn: ' "$log" >&2 || true
  say "building build/$preset"
  cmake --build --preset "$preset" -j "$(compilers_at_once)" "${targets[@]}" >&2
}
