"""Runs each Python example of core/docs/*.md, page by page, in a folder with the files that they speak of."""

import os
import re
import shutil
import sys
from pathlib import Path

from tap import ok

root = Path(sys.argv[1]).resolve()
count = 0
for page in sorted((root / "core/docs").glob("*.md")):
    folder = Path(page.stem).absolute()
    folder.mkdir()
    os.chdir(folder)
    for name in ("lenet5.lua", "lenet5.cnr", "digits/three.png"):
        shutil.copy(root / "scripts/nets" / name, Path(name).name)
    shutil.copy(root / "tests/bind/python/grid.lua", "grid.lua")
    Path("scripts").symlink_to(root / "scripts")
    scope = {}
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        count += 1
        try:
            exec(compile(example, f"{page.name}, example {count}", "exec"), scope)
            ok(True, f"{page.name}, example {count}")
        except Exception as e:
            ok(False, f"{page.name}, example {count}: {e!r}")
    os.chdir(folder.parent)
ok(count >= 10, "there are examples")
