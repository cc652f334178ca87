# Run as a test by lrcnn_absent_test.
if(NEEDED AND "$ENV{CI}" STREQUAL "true")
  message(FATAL_ERROR "needed where CI=true: ${REASON}")
endif()
message("lrcnn skips: ${REASON}")
