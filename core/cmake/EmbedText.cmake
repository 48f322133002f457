# cnr_embed_text(TARGET FILE...): each file becomes a C array "<stem>_<ext>" (const char[], with its
# length in <stem>_<ext>_bytes) declared in <stem>.<ext>.h; a #line names the source to compilers.
include_guard()
set(CNR_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

if(CMAKE_SCRIPT_MODE_FILE AND IN)
  file(READ "${IN}" text)
  string(PREPEND text "#line 1 \"${LABEL}\"\n")
  string(HEX "${text}" hex)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],0x[0-9a-f][0-9a-f],)" "\\1\n" bytes "${bytes}")
  file(WRITE "${OUT}" "/* ${LABEL}, embedded. */\nstatic const unsigned char ${SYMBOL}_data[] = {\n${bytes}0};\nstatic const char *const ${SYMBOL} = (const char *)${SYMBOL}_data;\nenum { ${SYMBOL}_bytes = sizeof ${SYMBOL}_data - 1 };\n")
  return()
endif()

function(cnr_embed_text target)
  foreach(file ${ARGN})
    get_filename_component(path ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME)
    file(RELATIVE_PATH label ${CMAKE_SOURCE_DIR} ${path})
    string(MAKE_C_IDENTIFIER ${name} symbol)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/embed/${name}.h)
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -DIN=${path} -DOUT=${out} -DSYMBOL=${symbol} -DLABEL=${label}
              -P ${CNR_EMBED_SCRIPT}
      DEPENDS ${path} ${CNR_EMBED_SCRIPT} VERBATIM)
    target_sources(${target} PRIVATE ${out})
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/embed)
endfunction()
