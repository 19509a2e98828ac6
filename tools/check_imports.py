"""Check the package's structure: imports between its layers, and duplicate names.

``python -m tools.check_imports``, which is part of ``make lint``, prints each violation, and fails
if there are any. All rules are computed from the sources:

- A module imports only its own layer and those above it in ``LAYERS``. This includes imports inside
  functions, in ``TYPE_CHECKING`` blocks, and of JavaScript modules.
- Modules don't import each other in a cycle.
- No two classes have the same name, nor two files (but for each package's ``__init__.py`` and each
  lesson's ``checks.py``).
"""

import ast
import posixpath
import re
import sys
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

TOP = Path(__file__).parent.parent
PACKAGE = TOP / "cypresskit"

#: The packages and top modules. Each may import itself and those before it.
LAYERS = (
    "tables",
    "lesson_table",
    "files",
    "session",
    "threads",
    "subprocesses",
    "il",
    "devices",
    "published",
    "compiler",
    "machine",
    "kernels",
    "diagnosis",
    "chip",
    "trace",
    "timing",
    "blas",
    "host",
    "lazy",
    "today",
    "gains",
    "draw",
    "editing",
    "isolated",
    "teach",
    "grading",
    "cli",
)
DRAWING = ("bokeh", "ipywidgets")  # imported only by `draw` and by the pictures of lessons


@cache
def parse_sources() -> dict[str, ast.Module]:
    """Return the parsed files of the package by path, such as "il/parser.py"."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {
        file.relative_to(PACKAGE).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for file in files
    }


def layer_of(path: str) -> str:
    """Return the layer of a file; "" for ``__init__.py`` and ``__main__.py`` of the package."""
    first = path.split("/")[0].removesuffix(".py")
    return "" if first in ("__init__", "__main__") else first


def find_imports(path: str, tree: ast.Module, files: dict) -> list[str]:
    """Return what a file imports: paths of files of the package, and names of other packages."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: write `from cypresskit...`"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [_target(name, files) for name in names]


def _target(name: str, files: dict) -> str:
    parts = name.split(".")
    if parts[0] != "cypresskit":
        return parts[0]
    for end in range(len(parts), 0, -1):  # the longest part of the name that is a file
        path = "/".join(parts[1:end])
        for file in (f"{path}.py", f"{path}/__init__.py".lstrip("/")):
            if file in files:
                return file
    return "__init__.py"


def lesson_of(path: str) -> str:
    """Return the lesson whose folder contains a file, or ""."""
    match = re.match(r"teach/(l\d\d_\w+)/", path)
    return match[1] if match else ""


def find_wrong_imports(files: dict[str, ast.Module]) -> list[str]:
    """Find imports of higher layers, and of drawing packages."""
    violations = []
    for path, tree in files.items():
        layer = layer_of(path)
        if layer and layer not in LAYERS:
            violations.append(f"{path} is in no layer: add it to LAYERS")
            continue
        for target in find_imports(path, tree, files):
            if target in files and layer and layer != "cli":
                target_layer = layer_of(target)
                if not target_layer or (
                    target_layer in LAYERS and LAYERS.index(target_layer) > LAYERS.index(layer)
                ):
                    violations.append(f"{path} imports {target}, of a higher layer")
            may_draw = layer == "draw" or (lesson_of(path) and not path.endswith("checks.py"))
            if target in DRAWING and not may_draw:
                violations.append(f"{path} imports {target}, which only draw may")
            if lesson_of(path) and layer_of(target) == "draw" and not may_draw:
                violations.append(f"{path} imports {target}: a lesson's checks must not draw")
    return violations


def find_wrong_scripts(files: dict[str, ast.Module], scripts: dict[str, str]) -> list[str]:
    """Find uses of JavaScript modules of a higher layer.

    A use is an import in JavaScript, or the module's path as a string in Python.
    """
    named = [
        (path, posixpath.normpath(f"{posixpath.dirname(path)}/{target}"))
        for path, text in scripts.items()
        for target in re.findall(r'from "(\.[\w./]+\.js)"', text)
    ]
    named += [
        (path, node.value)
        for path, tree in files.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in scripts
    ]
    return [
        f"{path} uses {target}, of a higher layer"
        for path, target in named
        if LAYERS.index(layer_of(target)) > LAYERS.index(layer_of(path))
    ]


@cache
def read_scripts() -> dict[str, str]:
    """Return the JavaScript of the package by path, such as "draw/shell.js"."""
    return {
        file.relative_to(PACKAGE).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(PACKAGE.rglob("*.js"))
    }


def find_import_cycles(files: dict[str, ast.Module]) -> list[str]:
    """Find the first cycle of imports. The package's own ``__init__.py`` doesn't count."""
    graph = {
        path: (
            {
                target
                for target in find_imports(path, tree, files)
                if target in files and layer_of(target)
            }
            - {path}
        )
        for path, tree in files.items()
        if layer_of(path)
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = sorted(set(error.args[1]))
        return [f"import cycle of {len(cycle)} files: {', '.join(cycle[:4])}"]
    return []


def find_duplicate_names(files: dict[str, ast.Module]) -> list[str]:
    """Find names that several classes, or several files, share."""
    classes, names = defaultdict(list), defaultdict(list)
    for path, tree in files.items():
        if not path.endswith("__init__.py") and not (
            lesson_of(path) and path.endswith("checks.py")
        ):
            names[path.split("/")[-1]].append(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(path)
    same_classes = [
        f"class {name} is in {', '.join(paths)}"
        for name, paths in classes.items()
        if len(paths) > 1
    ]
    return same_classes + [
        f"{', '.join(paths)} have the same name" for paths in names.values() if len(paths) > 1
    ]


RULES = (find_wrong_imports, find_import_cycles, find_duplicate_names)


def find_violations() -> list[str]:
    """Return the violations of all rules, one per line."""
    lines = [line for rule in RULES for line in sorted(rule(parse_sources()))]
    return lines + sorted(find_wrong_scripts(parse_sources(), read_scripts()))


if __name__ == "__main__":
    found = find_violations()
    print("\n".join(found) or "No violations of the package's structure.")
    sys.exit(bool(found))
