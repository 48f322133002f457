# Writes OUT, a header with the commit that SOURCE is built from: git archive's, or a git checkout's of its
# own, with "-dirty" behind it where tracked files differ; else "". The file keeps its time while nothing changes.
set(archived "$Format:%H %ct$") # filled in by git archive; the second is the commit's time
set(commit "")
if(archived MATCHES "^[0-9a-f]+ ")
  string(SUBSTRING "${archived}" 0 12 commit)
endif()
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git describe --always --abbrev=12 --dirty --exclude=* WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define CNRI_COMMIT \"${commit}\"\n")
