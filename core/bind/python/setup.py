"""Builds the package: the extension from the C headers, and beside it libcnnrun, plugins and scripts.

CNNRUN_BUILD names a CMake build of cnnrun. Without it, CMake and Ninja make one in build/python/cmake.
With CNNRUN_SYSTEM the package takes the system's libcnnrun, plugins and scripts instead of its own.
With CNNRUN_AUDITWHEEL the libraries that those need are left for `auditwheel repair` to add.
CNNRUN_LICENCES names a folder with the licences of those libraries, which goes into the package.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))

SYSTEM_LIBRARY = bool(os.environ.get("CNNRUN_SYSTEM"))
# Plugins for video, drawing and pages, which load large libraries of the system.
LEFT_OUT = {"draw-cairo", "draw-graphviz", "source-video", "object-page"}
# Additional modules that are left out for the same reason. Their plugins are installed and report what is missing.
LEFT_OUT_MODULES = {"object-post/post.so", "source-images/codecs.so"}
# Libraries that every Linux with glibc has.
SYSTEM = re.compile(r"lib(c|m|dl|pthread|rt|gcc_s)\.so|ld-linux|linux-vdso")


def cmake_build() -> Path:
    """Folder of the CMake build that the package takes its files from."""
    given = os.environ.get("CNNRUN_BUILD")
    if given:
        folder = Path(given).resolve()
        if not (folder / "libcnnrun.so.1").exists():
            raise SystemExit(f"CNNRUN_BUILD: {folder} has no libcnnrun.so.1; build the target installed")
        return folder
    folder = ROOT / "build" / "python" / "cmake"
    subprocess.check_call(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCNNRUN_TESTS=OFF"])
    subprocess.check_call(["ninja", "-C", folder, "libcnnrun", "all-plugins"])
    return folder


def needed(library: Path) -> list[Path]:
    """Shared libraries that `library` needs and that not every system has."""
    lines = subprocess.check_output(["ldd", library], text=True).splitlines()
    found = [re.search(r"(\S+) => (/\S+)", line) for line in lines]
    return [Path(m[2]) for m in found if m and not SYSTEM.match(m[1])]


def copy_stripped(source: Path, folder: Path) -> None:
    """Copies a library into the folder without its symbols."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.check_call(["strip", "--strip-unneeded", "-o", folder / source.name, source])


def copy_runtime(build: Path, package: Path) -> None:
    """Copies what the extension finds beside itself into the built package."""
    libraries = package / "_lib"
    shutil.rmtree(libraries, ignore_errors=True)
    folder = build / "plugins"
    plugins = [p for p in sorted(folder.glob("*.so")) if p.stem not in LEFT_OUT]
    plugins += [m for p in plugins for m in sorted((folder / p.stem).glob("*.so"))
                if f"{p.stem}/{m.name}" not in LEFT_OUT_MODULES]
    for plugin in plugins:
        copy_stripped(plugin, libraries / plugin.parent.relative_to(build))
    copy_stripped(build / "libcnnrun.so.1", libraries)
    if not os.environ.get("CNNRUN_AUDITWHEEL"):
        for library in {n for p in [build / "libcnnrun.so.1", *plugins] for n in needed(p)}:
            copy_stripped(library, libraries)
    if os.environ.get("CNNRUN_LICENCES"):
        shutil.copytree(os.environ["CNNRUN_LICENCES"], libraries / "licences")
    for name in ("scripts", "governors"):
        shutil.rmtree(package / name, ignore_errors=True)
        shutil.copytree(ROOT / name, package / name)


class Build(build_ext):
    def run(self) -> None:
        """Builds the library by CMake first, then the extension."""
        build = cmake_build()
        os.environ["CNNRUN_BUILD"] = str(build)
        for extension in self.extensions:
            extension.library_dirs.append(str(build))
            extension.include_dirs += [str(ROOT / "core/include"), str(build / "include")]
        from build_cffi import ffi_of

        self.mkpath(self.build_temp)
        source = Path(self.build_temp) / "_cnnrun.c"
        ffi_of(ROOT / "core/include", build / "include").emit_c_code(str(source))
        self.extensions[0].sources = [str(source)]
        super().run()
        place = Path(self.get_ext_fullpath("cnnrun._cnnrun")).parent
        if not SYSTEM_LIBRARY:
            copy_runtime(build, place)
        shutil.copy(HERE / "cnnrun" / "py.typed", place)


if __name__ == "__main__":
    from setuptools import Extension

    setup(
        package_data={"cnnrun": ["py.typed"]},
        cmdclass={"build_ext": Build},
        ext_modules=[
            Extension(
                "cnnrun._cnnrun",
                [],
                libraries=["cnnrun"],
                py_limited_api=True,
                define_macros=[("Py_LIMITED_API", "0x03090000")],
                # RPATH, not RUNPATH: it also serves libcnnrun and the plugins that it opens.
                extra_link_args=[] if SYSTEM_LIBRARY else ["-Wl,--disable-new-dtags,-rpath,$ORIGIN/_lib"],
            )
        ],
    )
