# shellcheck shell=bash
# Shared by the commands in this folder; sourced, not run.
# Needs bash; leaves the caller in the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# help_if_asked ARGUMENT...  where one of them is -h or --help, prints the comment that the calling script begins with, and ends. To be called
# before anything is installed, built or written.
help_if_asked() {
  local argument
  for argument in "$@"; do
    case $argument in -h | --help)
      sed -n '2,/^[^#]/s/^# \{0,1\}//p' "scripts/${0##*/}"
      exit
      ;;
    esac
  done
}

# Headers that are fetched or copied; CMake looks there, too. Never in git.
deps=.deps

# What is needed, as "Debian package: command or header that shows it is there". A thing that was installed by other
# means than apt counts as well.
readonly tools=(g++:g++ cmake:cmake ninja-build:ninja)
readonly libraries=(libdnnl-dev:oneapi/dnnl/dnnl.hpp zlib1g-dev:zlib.h nlohmann-json3-dev:nlohmann/json.hpp
  libcli11-dev:CLI/CLI.hpp libjpeg62-turbo-dev:jpeglib.h libpng-dev:png.h
  libtiff-dev: libopenslide-dev:openslide/openslide.h libstb-dev:stb/stb_image_resize.h libdlpack-dev:dlpack/dlpack.h libbenchmark-dev:benchmark/benchmark.h
  doctest-dev:doctest/doctest.h)
# shellcheck disable=SC2034
readonly checkers=(clang:clang++ libclang-rt-dev: clang-format: libomp-dev: python3:python3 python3-venv: ca-certificates: qemu-user:qemu-aarch64
  g++-aarch64-linux-gnu:aarch64-linux-gnu-g++)  # for scripts/test

# there PACKAGE:PROBE
there() {
  local package=${1%%:*} probe=${1#*:} prefix
  case $probe in
    '') ;;
    *.h | *.hpp) for prefix in /usr/include /usr/local/include "$deps/debian/include"; do [ ! -e "$prefix/$probe" ] || return 0; done ;;
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

# fetch_headers FOLDER PACKAGE VERSION HEADER: the folder of a wheel on PyPI that holds HEADER becomes $deps/FOLDER/include.
# The version is that of the variable LRCNN_<VERSION>_VERSION in cmake/LrcnnDependencies.cmake; another one that lies there
# is replaced. Debian's pip may not install outside a virtual environment, but may download; a machine without pip gets
# one from python3-venv. False, with a message, if it cannot be had.
fetch_headers() (
  name=$1 package=$2 header=$4 pip=(python3 -m pip)
  version=$(sed -n "s/^set(LRCNN_$3_VERSION \([^ )]*\)).*/\1/p" cmake/LrcnnDependencies.cmake)
  if [ -e "$deps/$name/include/$header" ] && [ "$(cat "$deps/$name/version" 2>/dev/null)" = "$version" ]; then return 0; fi
  mkdir -p "$deps"
  folder=$(mktemp -d "$deps/fetch.XXXXXX") || return 1   # it says why
  trap 'rm -rf "$folder"' EXIT
  if ! "${pip[@]}" --version >/dev/null 2>&1; then
    python3 -m venv "$folder/venv" >/dev/null 2>&1 || true
    pip=("$folder/venv/bin/python" -m pip)
  fi
  # The headers are the same for every processor and every Python: one of each is named, so that all machines get them.
  if "${pip[@]}" download -q --no-deps --only-binary=:all: --platform manylinux_2_28_x86_64 --python-version 3.11 \
    --implementation cp --abi cp311 --abi none -d "$folder" "$package==$version" >"$folder/log" 2>&1 &&
    python3 -m zipfile -e "$folder"/*.whl "$folder/wheel" >>"$folder/log" 2>&1 &&
    found=$(find "$folder/wheel" -path "*/include/$header" -print -quit) && [ -n "$found" ]; then
    mkdir "$folder/whole"
    mv "${found%/"$header"}" "$folder/whole/include"
    printf '%s\n' "$version" >"$folder/whole/version"
    rm -rf "${deps:?}/$name"
    mv "$folder/whole" "$deps/$name"  # at once, so that a cut-off run leaves nothing that looks complete
    return 0
  fi
  say "could not fetch $package $version from PyPI; what needs it will be missing, or use the version in $deps/$name:"
  sed 's/^/    /' "$folder/log" >&2 2>/dev/null || true
  return 1
)

# For a compile check of the oneDNN backend; Debian 12 has version 2.
fetch_onednn3() { fetch_headers onednn3 onednn-devel ONEDNN3 oneapi/dnnl/dnnl.hpp; }

# For lrcnn::cudnn; Debian does not have it.
fetch_cudnn_frontend() { fetch_headers cudnn-frontend nvidia-cudnn-frontend CUDNN_FRONTEND cudnn_frontend.h; }

# fetch_aarch64: Debian's oneDNN and OpenMP for that processor go to $deps/aarch64, for the tests that an emulator runs. Nothing is
# installed, and the system's own lists of packages stay as they are. False, with a message, if they cannot be had.
fetch_aarch64() (
  if [ -e "$deps/aarch64/include/oneapi/dnnl/dnnl.hpp" ]; then return 0; fi
  command -v apt-get >/dev/null 2>&1 || return 1
  mkdir -p "$deps"
  folder=$(mktemp -d "$deps/fetch.XXXXXX") || return 1
  folder=$(realpath "$folder")
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder/lists/partial" "$folder/whole"
  apt=(apt-get -q -oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists="$folder/lists"
    -oAPT::Sandbox::User="$(id -un)" -oDir::Cache="$folder" -oDebug::NoLocking=1)
  if (cd "$folder" && "${apt[@]}" update && "${apt[@]}" download libdnnl-dev libdnnl2 libgomp1) >"$folder/log" 2>&1 &&
    for package in "$folder"/*.deb; do dpkg -x "$package" "$folder/whole" || exit 1; done; then
    rm -rf "$deps/aarch64"
    mv "$folder/whole/usr" "$deps/aarch64"
    return 0
  fi
  say "could not fetch oneDNN for aarch64; its test will be missing:"
  sed 's/^/    /' "$folder/log" >&2 2>/dev/null || true
  return 1
)

# fetch_pytorch: what bench/peers/requirements.txt names goes from PyPI to an environment of its own, $deps/peers, unless it
# is there. What an older list or a cut-off run left is completed. False, with a message, if it cannot be had.
fetch_pytorch() {
  local list=bench/peers/requirements.txt folder=$deps/peers
  if cmp -s "$list" "$folder/installed"; then return 0; fi
  say "installing PyTorch into $folder, for this comparison only: some 3 GB to download, 5 GB on disk, minutes"
  if python3 -m venv "$folder" >&2 && "$folder/bin/python" -m pip install --no-cache-dir -r "$list" >&2; then
    cp "$list" "$folder/installed"
    return 0
  fi
  say "could not install PyTorch (the messages are above); it comes from PyPI, with python3-venv; make it reachable, or name \
a Python that has it in LRCNN_PEERS_PYTHON"
  return 1
}

# fetch_onnx: what scripts/onnx/requirements.txt names goes from PyPI to an environment of its own, $deps/onnx, unless it is there. False, with
# a message, if it cannot be had.
fetch_onnx() {
  local list=scripts/onnx/requirements.txt folder=$deps/onnx
  if cmp -s "$list" "$folder/installed"; then return 0; fi
  say "installing Python's onnx into $folder: some 40 MB to download, 150 MB on disk"
  if python3 -m venv "$folder" >&2 && "$folder/bin/python" -m pip install -q --no-cache-dir -r "$list" >&2; then
    cp "$list" "$folder/installed"
    return 0
  fi
  say "could not install Python's onnx (the messages are above); it comes from PyPI, with python3-venv; make it reachable, or name a Python \
that has it in LRCNN_ONNX_PYTHON"
  return 1
}

# fetch_nvdisasm: NVIDIA's disassembler goes from PyPI to $deps/nvdisasm, unless the version that is wanted is there. False, with a message, if it
# cannot be had.
fetch_nvdisasm() {
  local list=tests/machine_code/requirements.txt folder=$deps/nvdisasm
  if cmp -s "$list" "$folder/installed"; then return 0; fi
  say "installing NVIDIA's nvdisasm into $folder: some 5 MB to download"
  if python3 -m venv "$folder" >&2 && "$folder/bin/python" -m pip install -q --no-cache-dir -r "$list" >&2 &&
    ln -sf "$(cd "$folder" && find lib -name nvdisasm -type f -print -quit)" "$folder/nvdisasm" && "$folder/nvdisasm" --version >/dev/null; then
    cp "$list" "$folder/installed"
    return 0
  fi
  say "could not install nvdisasm; tests of the machine code will look at stack frames alone"
  return 1
}

# copy_debian PACKAGE...: what installed packages have for compilers and for CMake goes to $deps/debian as well, for a machine
# that cannot install them. Of a package that is not installed, what is there stays.
copy_debian() (
  mkdir -p "$deps/debian"
  folder=$(mktemp -d "$deps/copy.XXXXXX") || return 1
  trap 'rm -rf "$folder"' EXIT
  cp -a "$deps/debian" "$folder/whole"
  for package in "$@"; do
    if ! files=$(dpkg-query -L "$package" 2>/dev/null); then
      say "not installed here, so not copied: $package"
      continue
    fi
    while read -r file; do
      case $file in
        /usr/include/* | /usr/*/cmake/* | /usr/lib/*/lib*.so* | /usr/lib/*/lib*.a)
          if [ -d "$file" ] || [[ $(readlink "$file") == /* ]]; then continue; fi
          to=$folder/whole${file#/usr}
          mkdir -p "$(dirname "$to")"
          cp -P "$file" "$to"
          # Some packages' CMake files name /usr instead of finding out where they are.
          IFS=/ read -ra up <<<"$(dirname "${file#/usr/}")"
          [[ $file != *.cmake ]] || sed -i "s|set(_IMPORT_PREFIX \"/usr\")|set(_IMPORT_PREFIX \
\"\${CMAKE_CURRENT_LIST_DIR}$(printf '/..%.0s' "${up[@]}")\")|" "$to"
          ;;
      esac
    done <<<"$files"
  done
  rm -rf "$deps/debian"
  mv "$folder/whole" "$deps/debian"
)

# say_gpu PRESET: ctest skips the tests that need a GPU without a word where there is none; this says why, beforehand.
say_gpu() {
  local program
  for program in "build/$1"/tests/test_*.gpu; do
    [ -x "$program" ] || continue
    "$program" --count 2>&1 | grep '^lrcnn skips' >&2 || true
    return 0
  done
}

# As many compilers at once as there are processors, and memory for at 2 GB each.
compilers_at_once() {
  local processors memory
  processors=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 2000000)}' /proc/meminfo 2>/dev/null || true)
  if [ "${memory:-0}" -ge 1 ] && [ "$memory" -lt "$processors" ]; then echo "$memory"; else echo "$processors"; fi
}

# Options for configuring beside the preset's; scripts may set them.
configure_options=()

# build PRESET [TARGET...]  configures quietly, and builds; a failure shows everything.
build() {
  local preset=$1 target log targets=()
  shift
  for target in "$@"; do targets+=(--target "$target"); done
  mkdir -p build
  log=build/$preset.configure.log
  say "configuring build/$preset"
  if ! cmake --preset "$preset" "${configure_options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    die "configuring failed; a stale build/$preset may be the reason, and can be removed"
  fi
  grep '^-- lrcnn: ' "$log" >&2 || true
  say "building build/$preset"
  export NINJA_STATUS="[%f of %t, %e s] "
  cmake --build --preset "$preset" -j "$(compilers_at_once)" "${targets[@]}" >&2
}
