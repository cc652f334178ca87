# Finds the headers of cudnn-frontend: CudnnFrontend_FOUND, CudnnFrontend_VERSION, CUDNN_FRONTEND_INCLUDE_DIR and the target
# CudnnFrontend::CudnnFrontend. Searches CUDNN_FRONTEND_PATH (variable or environment), the .deps that scripts/deps
# fills, CMAKE_PREFIX_PATH, the system, and last the active python3's site-packages/include, where its wheel puts them.
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend_version.h
  HINTS ${CUDNN_FRONTEND_PATH} $ENV{CUDNN_FRONTEND_PATH} "${CMAKE_CURRENT_LIST_DIR}/../.deps/cudnn-frontend"
  PATH_SUFFIXES include)
if(NOT CUDNN_FRONTEND_INCLUDE_DIR)
  lrcnn_python_folders(_cudnn_wheels)
  find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend_version.h PATHS ${_cudnn_wheels} PATH_SUFFIXES include
    NO_DEFAULT_PATH)
endif()
mark_as_advanced(CUDNN_FRONTEND_INCLUDE_DIR)
set(CudnnFrontend_VERSION)
if(CUDNN_FRONTEND_INCLUDE_DIR AND EXISTS "${CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend_version.h")
  file(STRINGS "${CUDNN_FRONTEND_INCLUDE_DIR}/cudnn_frontend_version.h" _cudnn_lines
    REGEX "^#define CUDNN_FRONTEND_(MAJOR|MINOR|PATCH)_VERSION [0-9]+")
  string(REGEX REPLACE ".*MAJOR_VERSION ([0-9]+).*MINOR_VERSION ([0-9]+).*PATCH_VERSION ([0-9]+).*" "\\1.\\2.\\3"
    CudnnFrontend_VERSION "${_cudnn_lines}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudnnFrontend REQUIRED_VARS CUDNN_FRONTEND_INCLUDE_DIR
  VERSION_VAR CudnnFrontend_VERSION)
if(CudnnFrontend_FOUND AND NOT TARGET CudnnFrontend::CudnnFrontend)
  add_library(CudnnFrontend::CudnnFrontend INTERFACE IMPORTED)
  set_target_properties(CudnnFrontend::CudnnFrontend PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CUDNN_FRONTEND_INCLUDE_DIR}" IMPORTED_GLOBAL TRUE)
endif()
unset(_cudnn_wheels)
unset(_cudnn_lines)
