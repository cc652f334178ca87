# Finds cuDNN: CUDNN_FOUND, CUDNN_VERSION, CUDNN_INCLUDE_DIR, CUDNN_LIBRARY and the target CUDNN::cudnn.
# Searches CUDNN_ROOT and CUDNN_PATH (variables or environment), CMAKE_PREFIX_PATH, the CUDA toolkit, the system, and
# last the wheels nvidia-cudnn-cu* of the active python3, in site-packages/nvidia/cudnn.
set(_cudnn_hints ${CUDNN_PATH} $ENV{CUDNN_PATH})
foreach(_cudnn_folder IN LISTS CUDAToolkit_INCLUDE_DIRS)
  list(APPEND _cudnn_hints "${_cudnn_folder}/..")
endforeach()
find_path(CUDNN_INCLUDE_DIR cudnn_version.h HINTS ${_cudnn_hints} PATH_SUFFIXES include)
if(NOT CUDNN_INCLUDE_DIR)
  lrcnn_python_folders(_cudnn_wheels)
  list(TRANSFORM _cudnn_wheels APPEND /nvidia/cudnn)
  find_path(CUDNN_INCLUDE_DIR cudnn_version.h PATHS ${_cudnn_wheels} PATH_SUFFIXES include NO_DEFAULT_PATH)
endif()
set(CUDNN_NOTE)
if(CUDNN_INCLUDE_DIR)  # the library beside the header before any other, so that the two are of one version
  find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 NAMES_PER_DIR HINTS "${CUDNN_INCLUDE_DIR}/.." ${_cudnn_hints}
    PATH_SUFFIXES lib lib64)  # wheels have no libcudnn.so
  if(NOT CUDNN_LIBRARY)
    set(CUDNN_NOTE " (its headers are in ${CUDNN_INCLUDE_DIR}, but no libcudnn.so)")
  endif()
endif()
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)
set(CUDNN_VERSION)
if(CUDNN_INCLUDE_DIR AND EXISTS "${CUDNN_INCLUDE_DIR}/cudnn_version.h")
  file(STRINGS "${CUDNN_INCLUDE_DIR}/cudnn_version.h" _cudnn_lines REGEX "^#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) [0-9]+")
  string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCHLEVEL ([0-9]+).*" "\\1.\\2.\\3" CUDNN_VERSION "${_cudnn_lines}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)
if(CUDNN_FOUND AND NOT TARGET CUDNN::cudnn)
  add_library(CUDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(CUDNN::cudnn PROPERTIES
    IMPORTED_LOCATION "${CUDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${CUDNN_INCLUDE_DIR}" IMPORTED_GLOBAL TRUE)
endif()
unset(_cudnn_hints)
unset(_cudnn_wheels)
unset(_cudnn_lines)
