# Builds PROGRAMS by the preset `fuzz` in FOLDER; run as the test fuzz.build.
execute_process(COMMAND "${CMAKE_COMMAND}" --preset fuzz -B "${FOLDER}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
  WORKING_DIRECTORY "${SOURCE}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${FOLDER}" -j 2 --target ${PROGRAMS} COMMAND_ERROR_IS_FATAL ANY)
