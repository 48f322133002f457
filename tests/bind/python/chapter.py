"""Runs each example of core/docs/python.md in order, in one folder with the files that it speaks of."""

import re
import shutil
import sys
from pathlib import Path

from tap import ok

root = Path(sys.argv[1])
for name in ("lenet5.lua", "lenet5.cnr", "digits/three.png"):
    shutil.copy(root / "scripts/nets" / name, Path(name).name)
shutil.copy(root / "tests/bind/python/grid.lua", "grid.lua")
text = (root / "core/docs/python.md").read_text()
examples = re.findall(r"```python\n(.*?)```", text, re.S)
scope = {}
for number, example in enumerate(examples, 1):
    try:
        exec(compile(example, f"example {number}", "exec"), scope)
        ok(True, f"example {number}")
    except Exception as e:
        ok(False, f"example {number}: {e!r}")
ok(len(examples) >= 5, "there are examples")
