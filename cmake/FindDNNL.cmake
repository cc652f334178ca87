# Finds oneDNN: DNNL_FOUND, DNNL_VERSION, DNNL_INCLUDE_DIR, DNNL_LIBRARY and the target DNNL::dnnl.
# By header and library, not by oneDNN's own dnnl-config.cmake: that one demands OpenCL when the library was built with
# it (Debian's is), which nobody needs who does not include dnnl_ocl.hpp. Searches CMAKE_PREFIX_PATH, DNNL_ROOT, dnnl_DIR.
set(_dnnl_hints)
if(dnnl_DIR)
  list(APPEND _dnnl_hints ${dnnl_DIR}/../../.. ${dnnl_DIR}/../../../..)
endif()
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp HINTS ${_dnnl_hints} PATH_SUFFIXES include)
find_library(DNNL_LIBRARY dnnl HINTS ${_dnnl_hints})
mark_as_advanced(DNNL_INCLUDE_DIR DNNL_LIBRARY)
if(DNNL_INCLUDE_DIR AND EXISTS "${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
  file(STRINGS "${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" _dnnl_lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*PATCH +([0-9]+).*" "\\1.\\2.\\3" DNNL_VERSION "${_dnnl_lines}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DNNL REQUIRED_VARS DNNL_LIBRARY DNNL_INCLUDE_DIR VERSION_VAR DNNL_VERSION)
if(DNNL_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION "${DNNL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${DNNL_INCLUDE_DIR}" IMPORTED_GLOBAL TRUE)
endif()
unset(_dnnl_hints)
unset(_dnnl_lines)
