# Finds OpenSlide: OpenSlide_FOUND, OpenSlide_VERSION, OpenSlide_INCLUDE_DIR, OpenSlide_LIBRARY and the target OpenSlide::OpenSlide.
# The headers of version 3 do not say their version, so it is the one of openslide.pc beside the library.
find_path(OpenSlide_INCLUDE_DIR openslide/openslide.h)
find_library(OpenSlide_LIBRARY openslide)
mark_as_advanced(OpenSlide_INCLUDE_DIR OpenSlide_LIBRARY)
get_filename_component(_openslide_folder "${OpenSlide_LIBRARY}" DIRECTORY)
if(EXISTS "${_openslide_folder}/pkgconfig/openslide.pc")
  file(STRINGS "${_openslide_folder}/pkgconfig/openslide.pc" OpenSlide_VERSION REGEX "^Version:")
  string(REGEX REPLACE "^Version: *" "" OpenSlide_VERSION "${OpenSlide_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenSlide REQUIRED_VARS OpenSlide_LIBRARY OpenSlide_INCLUDE_DIR VERSION_VAR OpenSlide_VERSION)
if(OpenSlide_FOUND AND NOT TARGET OpenSlide::OpenSlide)
  add_library(OpenSlide::OpenSlide UNKNOWN IMPORTED)
  set_target_properties(OpenSlide::OpenSlide PROPERTIES
    IMPORTED_LOCATION "${OpenSlide_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${OpenSlide_INCLUDE_DIR}" IMPORTED_GLOBAL TRUE)
endif()
unset(_openslide_folder)
