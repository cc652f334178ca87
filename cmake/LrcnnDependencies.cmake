# What lrcnn needs from elsewhere, in one place: the minimum versions, how each thing is found, and the message when it
# is missing or too old. Used by our own build and, once installed, by lrcnnConfig.cmake.
# (CMake's own minimum is the first line of CMakeLists.txt, where CMake wants it.)
include_guard(GLOBAL)
set(LRCNN_MINIMUM_GNU 12.1)             # the first with the C++20 used here (constexpr std::vector, class template args)
set(LRCNN_MINIMUM_Clang 14.0)
set(LRCNN_MINIMUM_DNNL 2.6)             # Debian 12's; user-mode scratchpad, Winograd, s8 workspaces all present
set(LRCNN_MINIMUM_ZLIB 1.2.11)
set(LRCNN_MINIMUM_doctest 2.4.9)
set(LRCNN_MINIMUM_benchmark 1.7.0)
set(LRCNN_MINIMUM_nlohmann_json 3.10.0)
set(LRCNN_MINIMUM_CLI11 2.1.0)
set(LRCNN_ONEDNN3_VERSION 2026.1.0)     # PyPI's onednn-devel (oneDNN 3), headers for the compile check; read by scripts/
set(LRCNN_DEBIAN_DNNL libdnnl-dev)      # where Debian keeps them, for the messages
set(LRCNN_DEBIAN_ZLIB zlib1g-dev)
set(LRCNN_DEBIAN_doctest doctest-dev)
set(LRCNN_DEBIAN_benchmark libbenchmark-dev)
set(LRCNN_DEBIAN_nlohmann_json nlohmann-json3-dev)
set(LRCNN_DEBIAN_CLI11 libcli11-dev)

# Stops with a message if the C++ compiler is one we know to be too old. Others are given the benefit of the doubt.
function(lrcnn_check_compiler)
  set(needed "${LRCNN_MINIMUM_${CMAKE_CXX_COMPILER_ID}}")
  if(needed AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS needed)
    message(FATAL_ERROR "lrcnn: the compiler is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}; lrcnn needs "
      "g++ ${LRCNN_MINIMUM_GNU} or clang++ ${LRCNN_MINIMUM_Clang} or later; choose one with CMAKE_CXX_COMPILER")
  endif()
endfunction()

# lrcnn_find(<package>) finds a package of at least its minimum version, as imported targets visible everywhere.
# Sets in the caller's scope lrcnn_<package>_FOUND, and lrcnn_<package>_REASON, a sentence that says what was found, what
# is needed and what to install, when it is false.
macro(lrcnn_find package)
  set(lrcnn_${package}_FOUND FALSE)
  find_package(${package} QUIET GLOBAL)
  if("${${package}_VERSION}" STREQUAL "")
    set(${package}_VERSION "${${package}_VERSION_STRING}")  # FindZLIB before CMake 3.26
  endif()
  if(NOT ${package}_FOUND)
    set(lrcnn_${package}_REASON "${package} was not found; lrcnn needs version ${LRCNN_MINIMUM_${package}} or later; \
install it (Debian: apt-get install ${LRCNN_DEBIAN_${package}}) or add its prefix to CMAKE_PREFIX_PATH")
  elseif("${${package}_VERSION}" VERSION_LESS "${LRCNN_MINIMUM_${package}}")
    set(lrcnn_${package}_REASON "${package} ${${package}_VERSION} was found; lrcnn needs version \
${LRCNN_MINIMUM_${package}} or later; install a newer one (Debian: apt-get install ${LRCNN_DEBIAN_${package}}) or put \
its prefix first in CMAKE_PREFIX_PATH")
  else()
    set(lrcnn_${package}_FOUND TRUE)
    set(lrcnn_${package}_REASON "")
  endif()
endmacro()

# lrcnn_find_component(<onednn|data>) finds what an optional target of lrcnn links to.
# Sets lrcnn_<component>_FOUND, lrcnn_<component>_REASON and lrcnn_<component>_LIBRARIES in the caller's scope.
macro(lrcnn_find_component component)
  set(lrcnn_${component}_FOUND FALSE)
  if("${component}" STREQUAL "onednn")
    lrcnn_find(DNNL)
    set(lrcnn_onednn_FOUND ${lrcnn_DNNL_FOUND})
    set(lrcnn_onednn_REASON "${lrcnn_DNNL_REASON}")
    set(lrcnn_onednn_LIBRARIES DNNL::dnnl)
    find_package(OpenMP QUIET GLOBAL COMPONENTS CXX)  # optional: sets the number of threads, runs our own loops
    if(OpenMP_CXX_FOUND)
      list(APPEND lrcnn_onednn_LIBRARIES OpenMP::OpenMP_CXX)
    endif()
  elseif("${component}" STREQUAL "data")
    lrcnn_find(ZLIB)
    set(lrcnn_data_FOUND ${lrcnn_ZLIB_FOUND})
    set(lrcnn_data_REASON "${lrcnn_ZLIB_REASON}")
    set(lrcnn_data_LIBRARIES ZLIB::ZLIB)
  else()
    set(lrcnn_${component}_REASON "lrcnn has no component ${component}; there are onednn and data")
  endif()
endmacro()
