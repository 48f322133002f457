"""Declares the C API to cffi: what the preprocessor makes of the public headers, and some helpers."""

import re
import subprocess
import tempfile
from pathlib import Path

from cffi import FFI

HELPERS = Path(__file__).resolve().parent / "helpers.c"
HELPERS_CDEF = """
int cnrpy_run(cnr_session *session, const cnr_tensor *inputs, int32_t n_inputs,
              cnr_tensor *outputs, int32_t n_outputs, int32_t *taken, int32_t watched,
              cnr_error *err);
void cnrpy_watch_interrupt(const volatile int32_t **flag);
void cnrpy_unwatch_interrupt(void);
extern "Python" int32_t cnrpy_progress(void *arg, const cnr_progress *progress);
extern "Python" int32_t cnrpy_event(void *arg, int32_t kind, const void *of);
extern "Python" void cnrpy_log(void *arg, int32_t level, const char *plugin, const char *text);
"""


def without_functions(text: str) -> str:
    """Removes the bodies' owners: `static inline` functions, which cffi cannot declare."""
    while True:
        at = text.find("static inline")
        if at < 0:
            return text
        end, depth = text.index("{", at), 0
        while True:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        text = text[:at] + text[end:]


def declarations(*include: Path) -> str:
    """The declarations of <cnnrun/cnnrun.h>, without system headers and macros."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdint.h", "stddef.h", "string.h"):
            (Path(empty) / name).write_text("")
        folders = [f"-I{folder}" for folder in include]
        text = subprocess.run(
            ["cc", "-E", "-P", "-nostdinc", "-U__GNUC__", f"-I{empty}", *folders, "-"],
            input="#include <cnnrun/cnnrun.h>\n", stdout=subprocess.PIPE, check=True, text=True,
        ).stdout
    return re.sub(r"^#.*$", "", without_functions(text), flags=re.M)


def ffi_of(*include: Path) -> FFI:
    """Builds the cffi builder of the extension cnnrun._cnnrun from the headers in these include
    folders; compiles nothing yet."""
    ffi = FFI()
    ffi.cdef(declarations(*include) + HELPERS_CDEF)
    ffi.set_source("cnnrun._cnnrun", HELPERS.read_text())
    return ffi
