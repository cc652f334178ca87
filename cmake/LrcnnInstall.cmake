# Headers, the core target and the package files. Components are made by lrcnnConfig.cmake where they are used.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(lrcnn_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/lrcnn")  # share/: nothing in it depends on the architecture
install(DIRECTORY include/lrcnn DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING
  PATTERN "*.hpp" PATTERN "*.cu" PATTERN "*.cpp")
install(TARGETS lrcnn EXPORT lrcnnTargets INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT lrcnnTargets NAMESPACE lrcnn:: DESTINATION "${lrcnn_package_dir}")
configure_package_config_file(cmake/lrcnnConfig.cmake.in "${PROJECT_BINARY_DIR}/lrcnnConfig.cmake"
  INSTALL_DESTINATION "${lrcnn_package_dir}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/lrcnnConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/lrcnnConfig.cmake" "${PROJECT_BINARY_DIR}/lrcnnConfigVersion.cmake"
  cmake/LrcnnDependencies.cmake cmake/LrcnnPrecompiled.cmake cmake/FindDNNL.cmake cmake/FindCUDNN.cmake cmake/FindCudnnFrontend.cmake
  cmake/FindOpenSlide.cmake cmake/FindStbResize.cmake cmake/FindDLPack.cmake
  DESTINATION "${lrcnn_package_dir}")
install(FILES cmake/cudnn/CMakeLists.txt DESTINATION "${lrcnn_package_dir}/cudnn")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
