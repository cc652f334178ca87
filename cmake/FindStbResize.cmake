# Finds the header stb_image_resize.h: StbResize_FOUND, StbResize_VERSION, StbResize_INCLUDE_DIR and the target StbResize::StbResize.
find_path(StbResize_INCLUDE_DIR stb/stb_image_resize.h)
mark_as_advanced(StbResize_INCLUDE_DIR)
if(StbResize_INCLUDE_DIR)
  file(STRINGS "${StbResize_INCLUDE_DIR}/stb/stb_image_resize.h" StbResize_VERSION REGEX "stb_image_resize - v[0-9.]+" LIMIT_COUNT 1)
  string(REGEX REPLACE ".*stb_image_resize - v([0-9.]+).*" "\\1" StbResize_VERSION "${StbResize_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(StbResize REQUIRED_VARS StbResize_INCLUDE_DIR VERSION_VAR StbResize_VERSION)
if(StbResize_FOUND AND NOT TARGET StbResize::StbResize)
  add_library(StbResize::StbResize INTERFACE IMPORTED)
  set_target_properties(StbResize::StbResize PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${StbResize_INCLUDE_DIR}" INTERFACE_LINK_LIBRARIES m IMPORTED_GLOBAL TRUE)
endif()
