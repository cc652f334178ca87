# lrcnn::precompiled, lrcnn::onednn_precompiled and lrcnn::cudnn_precompiled: what is the same for all networks (include/lrcnn/precompiled)
# is compiled once for a project instead of in every source file. A program links one of them instead of lrcnn::lrcnn, lrcnn::onednn or
# lrcnn::cudnn; its sources stay as they are. They are compiled only where something links them.
# In: LRCNN_INCLUDE_DIR; the targets lrcnn::lrcnn and, where they are there, lrcnn::onednn and lrcnn::cudnn
set(lrcnn_precompiled_folder "${LRCNN_INCLUDE_DIR}/lrcnn/precompiled")
if(NOT TARGET lrcnn_host_loops)   # these know nothing of OpenMP
  add_library(lrcnn_host_loops OBJECT EXCLUDE_FROM_ALL "${lrcnn_precompiled_folder}/host.cpp")
  target_link_libraries(lrcnn_host_loops PRIVATE lrcnn::lrcnn)
  set_target_properties(lrcnn_host_loops PROPERTIES POSITION_INDEPENDENT_CODE ON)   # may become part of a shared library
endif()
# lrcnn_add_precompiled(<target> <library> <backend>...): lrcnn::<target>, a library with the core's code and those backends'.
function(lrcnn_add_precompiled target library)
  if(TARGET lrcnn_${target} OR NOT TARGET ${library})
    return()
  endif()
  add_library(lrcnn_${target} STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:lrcnn_host_loops> "${lrcnn_precompiled_folder}/training.cpp")
  add_library(lrcnn::${target} ALIAS lrcnn_${target})
  target_link_libraries(lrcnn_${target} PUBLIC ${library})
  target_compile_definitions(lrcnn_${target} PUBLIC LRCNN_PRECOMPILED)
  set_target_properties(lrcnn_${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(backend IN LISTS ARGN)
    string(TOUPPER "LRCNN_PRECOMPILED_${backend}" definition)
    target_sources(lrcnn_${target} PRIVATE "${lrcnn_precompiled_folder}/${backend}.cpp")
    target_compile_definitions(lrcnn_${target} PUBLIC ${definition})
  endforeach()
endfunction()
lrcnn_add_precompiled(precompiled lrcnn::lrcnn)
lrcnn_add_precompiled(onednn_precompiled lrcnn::onednn onednn)
lrcnn_add_precompiled(cudnn_precompiled lrcnn::cudnn cudnn)
