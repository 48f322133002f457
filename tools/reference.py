"""Prints the reference of a Python package as Markdown: what __all__ names, with annotations and docstrings.

    python3 tools/reference.py PACKAGE_FOLDER
"""

import ast
import inspect
import sys
from pathlib import Path


def doc_of(node):
    """The docstring of a node."""
    return inspect.cleandoc(ast.get_docstring(node) or "")


def signature_of(node, owner):
    """The signature of a function."""
    for argument in node.args.args[:1] if owner else []:
        if argument.arg in ("self", "cls"):
            node.args.args = node.args.args[1:]
    name = owner if node.name == "__init__" else f"{owner}.{node.name}" if owner else node.name
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"{name}({ast.unparse(node.args)}){returns}"


def block(code, text):
    """A block of code with a text."""
    return f"```python\n{code}\n```\n" + (f"\n{text}\n" if text else "")


def is_public(node):
    """True: the name is public."""
    return not node.name.startswith("_") or node.name in ("__init__", "__call__", "__iter__", "__getitem__")


def is_inside(node):
    """True for a constructor of what other functions make."""
    arguments = node.args.args[1:]
    return node.name == "__init__" and arguments and "Handle" in ast.unparse(arguments[0])


def members_of(node):
    """Public members that the constructor annotates."""
    return [f"{f.target.attr}: {ast.unparse(f.annotation)}" for m in node.body
            if isinstance(m, ast.FunctionDef) and m.name == "__init__" for f in ast.walk(m)
            if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Attribute) and f.target.attr[0] != "_"]


def describe(node):
    """The text on a class or function."""
    if isinstance(node, ast.Assign):
        return block(ast.unparse(node), "")
    if not isinstance(node, ast.ClassDef):
        return block(signature_of(node, ""), doc_of(node))
    bases = ", ".join(ast.unparse(b) for b in node.bases)
    out = block(f"class {node.name}" + (f"({bases})" if bases else ""), doc_of(node))
    fields = [ast.unparse(f) for f in node.body if isinstance(f, ast.AnnAssign)] + members_of(node)
    if fields:
        out += "\n" + block("\n".join(fields), "")
    for f in node.body:
        if isinstance(f, ast.FunctionDef) and is_public(f) and not is_inside(f):
            is_property = any(ast.unparse(d).split(".")[-1] in ("property", "setter") for d in f.decorator_list)
            head = f"{node.name}.{f.name}: {ast.unparse(f.returns)}" if is_property and f.returns else signature_of(
                f, node.name)
            out += f"\n### {node.name}.{f.name}\n\n" + block(head, doc_of(f))
    return out


folder = Path(sys.argv[1])
defined = {}
for path in sorted(folder.glob("_*.py")):
    for node in ast.parse(path.read_text()).body:
        for name in [node.name] if hasattr(node, "name") else [
                t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)]:
            defined.setdefault(name, node)
package = ast.parse((folder / "__init__.py").read_text())
names = next(ast.literal_eval(n.value) for n in package.body
             if isinstance(n, ast.Assign) and n.targets[0].id == "__all__")
print("# Python\n\n" + doc_of(package) .replace("```", ""))
for name in names:
    if name not in defined:
        sys.exit(f"{folder}: __all__ names {name}, which no file defines")
    print(f"\n## {name}\n\n{describe(defined[name])}")
