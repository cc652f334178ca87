# What lrcnn needs from elsewhere, in one place: the minimum versions, how each thing is found, and the message when it
# is missing or too old. Used by our own build and, once installed, by lrcnnConfig.cmake.
# (CMake's own minimum is the first line of CMakeLists.txt, where CMake wants it.)
set(LRCNN_CUDNN_FOLDER "${CMAKE_CURRENT_LIST_DIR}/cudnn")
set(LRCNN_MINIMUM_GNU 12.1)             # the first with the C++20 used here (constexpr std::vector, class template args)
set(LRCNN_MINIMUM_Clang 14.0)
set(LRCNN_MINIMUM_DNNL 2.6)             # Debian 12's; user-mode scratchpad, Winograd, s8 workspaces all present
set(LRCNN_MINIMUM_ZLIB 1.2.11)
set(LRCNN_MINIMUM_doctest 2.4.9)
set(LRCNN_MINIMUM_benchmark 1.7.0)
set(LRCNN_MINIMUM_nlohmann_json 3.10.0)
set(LRCNN_MINIMUM_CLI11 2.1.0)
set(LRCNN_MINIMUM_JPEG 62)               # the interface's version, which libjpeg-turbo has
set(LRCNN_MINIMUM_PNG 1.6)               # the first with functions that read a whole picture
set(LRCNN_MINIMUM_TIFF 4.5)               # the first whose errors belong to one open file, not to the process
set(LRCNN_MINIMUM_OpenSlide 3.4.1)       # Debian 12's
set(LRCNN_MINIMUM_StbResize 0.96)        # the one with alpha and edge modes
set(LRCNN_MINIMUM_DLPack 0.6)            # Debian 12's
set(LRCNN_MINIMUM_CUDAToolkit 12.0)     # the first nvcc with C++20; our tests run 13.0
set(LRCNN_MINIMUM_CUDNN 9.8)            # the first that checks plans for a device that is not there; our tests run 9.19
set(LRCNN_MINIMUM_CudnnFrontend 1.23)   # the oldest that was tried
# PyPI's packages of headers; read by scripts/, too.
set(LRCNN_ONEDNN3_VERSION 2026.1.0)        # onednn-devel (oneDNN 3), for a compile check
set(LRCNN_CUDNN_FRONTEND_VERSION 1.32.0)   # nvidia-cudnn-frontend, which Debian does not have
# Where they come from, for the messages.
set(LRCNN_SOURCE_DNNL "Debian: apt-get install libdnnl-dev")
set(LRCNN_SOURCE_ZLIB "Debian: apt-get install zlib1g-dev")
set(LRCNN_SOURCE_doctest "Debian: apt-get install doctest-dev")
set(LRCNN_SOURCE_benchmark "Debian: apt-get install libbenchmark-dev")
set(LRCNN_SOURCE_nlohmann_json "Debian: apt-get install nlohmann-json3-dev")
set(LRCNN_SOURCE_CLI11 "Debian: apt-get install libcli11-dev")
set(LRCNN_SOURCE_JPEG "Debian: apt-get install libjpeg62-turbo-dev")
set(LRCNN_SOURCE_PNG "Debian: apt-get install libpng-dev")
set(LRCNN_SOURCE_TIFF "Debian: apt-get install libtiff-dev")
set(LRCNN_SOURCE_OpenSlide "Debian: apt-get install libopenslide-dev")
set(LRCNN_SOURCE_StbResize "Debian: apt-get install libstb-dev")
set(LRCNN_SOURCE_DLPack "Debian: apt-get install libdlpack-dev")
set(LRCNN_SOURCE_CUDAToolkit "NVIDIA's CUDA toolkit with nvcc")
set(LRCNN_SOURCE_CUDNN "NVIDIA's packages, or pip install nvidia-cudnn-cu13")
set(LRCNN_SOURCE_CudnnFrontend
  "pip install nvidia-cudnn-frontend==${LRCNN_CUDNN_FRONTEND_VERSION}, or scripts/deps in lrcnn's repository")

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
    set(${package}_VERSION "${${package}_VERSION_STRING}")  # FindZLIB before CMake 3.26, FindPNG
  endif()
  if(NOT ${package}_FOUND)
    set(lrcnn_${package}_REASON "${package} was not found${${package}_NOTE}; lrcnn needs version ${LRCNN_MINIMUM_${package}} or later; \
install it (${LRCNN_SOURCE_${package}}) or add its prefix to CMAKE_PREFIX_PATH")
  elseif("${${package}_VERSION}" VERSION_LESS "${LRCNN_MINIMUM_${package}}")
    set(lrcnn_${package}_REASON "${package} ${${package}_VERSION} was found; lrcnn needs version \
${LRCNN_MINIMUM_${package}} or later; install a newer one (${LRCNN_SOURCE_${package}}) or put \
its prefix first in CMAKE_PREFIX_PATH")
  else()
    set(lrcnn_${package}_FOUND TRUE)
    set(lrcnn_${package}_REASON "")
  endif()
endmacro()

# lrcnn_python_folders(<variable>): where the active python3 has packages, for what pip installs. The last place to look.
function(lrcnn_python_folders result)
  set(folders)
  find_program(LRCNN_PYTHON3 python3)
  mark_as_advanced(LRCNN_PYTHON3)
  if(LRCNN_PYTHON3)
    execute_process(COMMAND "${LRCNN_PYTHON3}" -c "import sys; print(';'.join(p for p in sys.path if p.endswith('-packages')))"
      OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  set(${result} "${folders}" PARENT_SCOPE)
endfunction()

# Components that are one library each: <component>=<package>=<target>.
set(LRCNN_LIBRARY_COMPONENTS data=ZLIB=ZLIB::ZLIB tiff=TIFF=TIFF::TIFF openslide=OpenSlide=OpenSlide::OpenSlide jpeg=JPEG=JPEG::JPEG png=PNG=PNG::PNG
  resize=StbResize=StbResize::StbResize safetensors=nlohmann_json=nlohmann_json::nlohmann_json dlpack=DLPack=DLPack::DLPack)
set(LRCNN_COMPONENTS onednn cudnn)
foreach(entry IN LISTS LRCNN_LIBRARY_COMPONENTS)
  string(REGEX REPLACE "=.*" "" component "${entry}")
  list(APPEND LRCNN_COMPONENTS ${component})
endforeach()

# lrcnn_find_component(<one of LRCNN_COMPONENTS>) finds what an optional target of lrcnn links to.
# Sets lrcnn_<component>_FOUND, lrcnn_<component>_REASON and lrcnn_<component>_LIBRARIES in the caller's scope.
# For cudnn that is a library to be compiled, which is defined here, once for a project (cudnn/CMakeLists.txt). It is looked for once, too: CMake
# enters a folder a single time, so what was lacking then is the answer from then on.
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
  elseif("${component}" STREQUAL "cudnn")
    if(TARGET lrcnn_cudnn_library)
      set(lrcnn_cudnn_FOUND TRUE)
    else()
      get_property(lrcnn_cudnn_REASON GLOBAL PROPERTY lrcnn_cudnn_REASON)
      if(NOT lrcnn_cudnn_REASON)
        add_subdirectory("${LRCNN_CUDNN_FOLDER}" "${CMAKE_BINARY_DIR}/lrcnn_cudnn")
        set_property(GLOBAL PROPERTY lrcnn_cudnn_REASON "${lrcnn_cudnn_REASON}")
      endif()
    endif()
    set(lrcnn_cudnn_LIBRARIES lrcnn_cudnn_library)
  elseif(";${LRCNN_LIBRARY_COMPONENTS}" MATCHES ";${component}=([^=]*)=([^;]*)")
    set(lrcnn_${component}_LIBRARIES "${CMAKE_MATCH_2}")
    set(lrcnn_package "${CMAKE_MATCH_1}")
    lrcnn_find(${lrcnn_package})
    set(lrcnn_${component}_FOUND ${lrcnn_${lrcnn_package}_FOUND})
    set(lrcnn_${component}_REASON "${lrcnn_${lrcnn_package}_REASON}")
  else()
    list(JOIN LRCNN_COMPONENTS ", " lrcnn_names)
    set(lrcnn_${component}_REASON "lrcnn has no component ${component}; there are lrcnn, ${lrcnn_names}, precompiled, onednn_precompiled and \
cudnn_precompiled")
  endif()
endmacro()
