# cnr_add_plugin(NAME SOURCES ... [PACKAGES pkg-config names] [LIBRARIES ...] [NO_INSTALL] [STATIC])
# Builds plugins/NAME.so against the public headers alone: one exported function, nothing linked of ours; C++ is C++17.
# A plugin whose PACKAGES are missing is left out, with a line that says so.
# `cmake --install` puts it into lib/cnnrun/plugins, where cnnrun looks, unless NO_INSTALL is given.
# STATIC builds an archive instead, for programs that link plugins in (core/docs/abi.md). Its function is
# cnr_plugin_query_NAME, with _ for each character of NAME that C has not in names.
include_guard()
include(GNUInstallDirs)
set(CNR_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map)
include(${CMAKE_CURRENT_LIST_DIR}/EmbedText.cmake)

function(cnr_add_plugin name)
  cmake_parse_arguments(P "NO_INSTALL;STATIC" "" "SOURCES;PACKAGES;LIBRARIES" ${ARGN})
  set(libraries ${P_LIBRARIES})
  if(P_PACKAGES)
    find_package(PkgConfig REQUIRED)
    string(MAKE_C_IDENTIFIER "CNR_${name}" prefix)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${P_PACKAGES})
    if(NOT ${prefix}_FOUND)
      message(STATUS "plugin ${name}: left out, needs ${P_PACKAGES}")
      return()
    endif()
    list(APPEND libraries PkgConfig::${prefix})
  endif()
  if(P_STATIC)
    add_library(${name} STATIC ${P_SOURCES})
    string(MAKE_C_IDENTIFIER "cnr_plugin_query_${name}" query)
    target_compile_definitions(${name} PRIVATE cnr_plugin_query=${query})
  else()
    add_library(${name} MODULE ${P_SOURCES})
    set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
    # Templates of the C++ library are visible whatever the preset says.
    target_link_options(${name} PRIVATE -Wl,--no-undefined-version -Wl,--version-script=${CNR_PLUGIN_MAP})
  endif()
  set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  if("${P_SOURCES}" MATCHES "[.](cpp|cc|cxx)(;|$)")
    target_compile_features(${name} PRIVATE cxx_std_17)
  endif()
  if(TARGET all-plugins AND NOT P_STATIC)
    add_dependencies(all-plugins ${name})
  endif()
  if(TARGET cnnrun-core)
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/core/include
                               ${CMAKE_BINARY_DIR}/include)
  else()
    target_link_libraries(${name} PRIVATE cnnrun::headers)
  endif()
  target_link_libraries(${name} PRIVATE ${libraries} m)
  if(NOT P_NO_INSTALL AND NOT P_STATIC)
    install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/cnnrun/plugins)
  endif()
endfunction()

# cnr_add_module(PLUGIN NAME SOURCES ... [LIBRARIES ...]): PLUGIN/NAME.so beside the plugin, which opens it
# when it wants it (late-common).
function(cnr_add_module plugin name)
  cmake_parse_arguments(P "" "" "SOURCES;LIBRARIES" ${ARGN})
  set(target ${plugin}-${name})
  add_library(${target} MODULE ${P_SOURCES})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
    C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins/${plugin})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/core/include
                             ${CMAKE_BINARY_DIR}/include)
  target_link_libraries(${target} PRIVATE ${P_LIBRARIES} m)
  add_dependencies(${plugin} ${target})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/cnnrun/plugins/${plugin})
endfunction()
