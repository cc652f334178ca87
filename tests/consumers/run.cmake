# Configures, builds and runs one consumer project, and compares what it prints with the version.
#   cmake -DCONSUMER=find_package -DSOURCE=<lrcnn> -DBUILD=<lrcnn's build> -DSCRATCH=<folder> -DVERSION=0.1.0
#         -DCOMPONENTS=onednn,data [-DEXPECT_ERROR=<text>] [-DOPTIONS=-D<x>=<y>,...] [-DTARGET=<target>] [-DINCLUDEDIR=<folder>] -P run.cmake
# With EXPECT_ERROR, configuring must fail with that text instead. OPTIONS are more arguments for configuring. With TARGET that target alone is
# built, and nothing is run. With INCLUDEDIR, lrcnn is configured anew with that CMAKE_INSTALL_INCLUDEDIR, and installed from there.
file(REMOVE_RECURSE "${SCRATCH}")  # a clean start: nothing left by an earlier run can help
file(MAKE_DIRECTORY "${SCRATCH}")
string(REPLACE "," ";" OPTIONS "${OPTIONS}")
set(options "-DCONSUMER_COMPONENTS=${COMPONENTS}" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_COMPILER=${COMPILER}"
  "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" "-DCMAKE_CUDA_COMPILER_LAUNCHER=${LAUNCHER}" -G "${GENERATOR}" ${OPTIONS})
if(INCLUDEDIR)
  set(BUILD "${SCRATCH}/lrcnn")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BUILD}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_INSTALL_INCLUDEDIR=${INCLUDEDIR}" -DLRCNN_CUDNN=OFF -DLRCNN_TESTS=OFF -DLRCNN_EXAMPLES=OFF -DLRCNN_BENCH=OFF
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endif()
if(CONSUMER MATCHES "find_package$")
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${SCRATCH}/prefix"
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND options "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix")
elseif(CONSUMER STREQUAL "fetch_content")
  # The declared address is never used: the sources are here already.
  list(APPEND options "-DFETCHCONTENT_SOURCE_DIR_LRCNN=${SOURCE}" -DFETCHCONTENT_FULLY_DISCONNECTED=ON)
else()
  list(APPEND options "-DLRCNN_DIR=${SOURCE}")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}/tests/consumers/${CONSUMER}" -B "${SCRATCH}/build" ${options}
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(EXPECT_ERROR)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")  # CMake breaks lines
  string(FIND "${output}" "${EXPECT_ERROR}" at)
  if(code EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "should have failed with \"${EXPECT_ERROR}\"; result ${code}, output: ${output}")
  endif()
  return()
elseif(NOT code EQUAL 0)
  message(FATAL_ERROR "configuring failed: ${output}")
endif()
if(TARGET)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${SCRATCH}/build" --target "${TARGET}" COMMAND_ERROR_IS_FATAL ANY)
  return()
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${SCRATCH}/build" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${SCRATCH}/build/consumer" OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT output STREQUAL "lrcnn ${VERSION}")
  message(FATAL_ERROR "the consumer printed \"${output}\", not \"lrcnn ${VERSION}\"")
endif()
file(REMOVE_RECURSE "${SCRATCH}")
