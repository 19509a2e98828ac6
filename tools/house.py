"""The rules of the house: which room may know which, names that mean one thing, and statements that
do one thing, computed from the sources.

``python -m tools.house`` prints what breaks a rule, and fails if anything does; ``make lint`` runs
it. Imports count wherever they stand. Only the two faces, ``cypresskit/__init__.py`` and ``cli``,
may import late, as they must answer at once; no floor may import the first.
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

#: Each floor knows itself and those before it.
FLOORS = (
    "tables",
    "files",
    "session",
    "progress",
    "kept_files",
    "threads",
    "subprocesses",
    "il",
    "devices",
    "published",
    "compiler",
    "machine",
    "kernels",
    "timing",
    "blas",
    "host",
    "lazy",
    "today",
    "number_parsing",
    "draw",
    "editing",
    "isolated",
    "teach",
    "grading",
    "cli",
)
DRAWING = ("bokeh", "ipywidgets")  # imported by `draw` and by lessons' own pictures alone
#: Other packages that may be imported inside a function: they need not be there, or take long to
#: import.
LATE = (
    *DRAWING,
    "IPython",
    "anywidget",
    "cupy",
    "jupyterlab",
    "nbformat",
    "llvmlite",
    "numba",
    "tqdm",
    "traitlets",
)
#: Our own modules that may be imported late, since they pull in Bokeh or numba, which takes longer
#: than all the rest of `import cypresskit`, or twenty more of ours, or need a GPU.
LATE_OF_OURS = {
    "editing/views.py": ("draw/__init__.py",),  # with the first view that is played
    "machine/fast/__init__.py": ("machine/fast/execute.py",),  # with the first launch
    "machine/fast/jit.py": ("machine/fast/host.py",),  # where no compiled code is kept
    # a judge needs no CUDA
    "teach/l13_what_is_left/checks.py": ("teach/l13_what_is_left/own_gpu.py",),
    "teach/l14_cuda_kernel/checks.py": (
        "today/cuda_clock.py",
        "today/cuda_kernels.py",
        "teach/l13_what_is_left/own_gpu.py",
    ),
}


@cache
def sources() -> dict[str, ast.Module]:
    """The package's files by their path in it, such as "il/lexer.py"."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {
        file.relative_to(PACKAGE).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for file in files
    }


def floor(path: str) -> str:
    """The floor of a file, "" for the package's face."""
    first = path.split("/")[0].removesuffix(".py")
    return "" if first in ("__init__", "__main__") else first


def imports(path: str, tree: ast.Module, files: dict) -> list[tuple[ast.stmt, str]]:
    """Every import of a file, wherever it stands: the statement, and the file of the package or the
    other package.
    """
    result: list[tuple[ast.stmt, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            result += [(node, _target(alias.name, files)) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: say `from cypresskit...`"
            result += [
                (node, _target(f"{node.module}.{alias.name}", files)) for alias in node.names
            ]
    return result


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


def late(tree: ast.Module) -> set[ast.stmt]:
    """The imports that stand inside functions."""
    inside = (
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
    )
    return {node for node in inside if isinstance(node, ast.Import | ast.ImportFrom)}


def lesson(path: str) -> str:
    """The lesson whose folder a file is in, or ""."""
    match = re.match(r"teach/(l\d\d_\w+)/", path)
    return match[1] if match else ""


def arrows(files: dict[str, ast.Module]) -> list[str]:
    """Imports that no file of their floor may make."""
    violations = []
    for path, tree in files.items():
        own_floor = floor(path)
        inside = late(tree)
        if own_floor and own_floor not in FLOORS:
            violations.append(f"{path} is on no floor")
            continue
        for node, target in imports(path, tree, files):
            if target in files and own_floor and own_floor != "cli":
                other_floor = floor(target)
                if not other_floor or (
                    other_floor in FLOORS and FLOORS.index(other_floor) > FLOORS.index(own_floor)
                ):
                    violations.append(f"{path} -> {target} points upwards")
            draws = own_floor == "draw" or (lesson(path) and not path.endswith("checks.py"))
            if target in DRAWING and not draws:
                violations.append(f"{path} imports {target}, which is for draw")
            if lesson(path) and floor(target) == "draw" and not draws:
                violations.append(f"{path} -> {target}: a hand-in is judged where nothing is drawn")
            if (
                node in inside
                and own_floor not in ("", "cli")
                and target not in (*LATE, *LATE_OF_OURS.get(path, ()))
            ):
                violations.append(f"{path} imports {target} inside a function")
    return violations


def script_arrows(files: dict[str, ast.Module], scripts: dict[str, str]) -> list[str]:
    """Modules of JavaScript that know a higher floor: by their imports, or since Python names a
    file of that floor, as in a list of modules.
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
        f"{path} -> {target} points upwards"
        for path, target in named
        if FLOORS.index(floor(target)) > FLOORS.index(floor(path))
    ]


@cache
def scripts() -> dict[str, str]:
    """The package's modules of JavaScript by their path in it, such as "draw/shell.js"."""
    return {
        file.relative_to(PACKAGE).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(PACKAGE.rglob("*.js"))
    }


def circles(files: dict[str, ast.Module]) -> list[str]:
    """The first files that import each other, directly or by way of others; the package's face
    apart.
    """
    graph = {
        path: (
            {
                target
                for _, target in imports(path, tree, files)
                if target in files and floor(target)
            }
            - {path}
        )
        for path, tree in files.items()
        if floor(path)
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = sorted(set(error.args[1]))
        return [f"circle: {', '.join(circle[:4])}, of {len(circle)}"]
    return []


def doubles(files: dict[str, ast.Module]) -> list[str]:
    """Names of classes and of files that mean several things."""
    classes, names = defaultdict(list), defaultdict(list)
    for path, tree in files.items():
        if not path.endswith("__init__.py") and not (lesson(path) and path.endswith("checks.py")):
            names[path.split("/")[-1]].append(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(path)
    class_doubles = [
        f"class {name} is in {', '.join(paths)}"
        for name, paths in classes.items()
        if len(paths) > 1
    ]
    return class_doubles + [
        f"{', '.join(paths)} have one name" for paths in names.values() if len(paths) > 1
    ]


def mixed_assignments(files: dict[str, ast.Module]) -> list[str]:
    """Unlike things that are assigned in one statement, as in ``kernel, n = find(text), 1024``.
    Things are alike if they are written alike, but for names and numbers: ``x[0], y[1]``.
    """
    result = []
    for path, tree in files.items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
                continue
            values = [ast.unparse(value) for value in node.value.elts]
            targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else []
            if any(isinstance(target, ast.Starred) for target in targets):
                continue
            names = [rf"(?<![\w.]){re.escape(ast.unparse(target))}(?!\w)" for target in targets]
            swaps = any(re.search(name, value) for name in names for value in values)
            if len(targets) == len(values) and not swaps and len(set(map(_form, values))) > 1:
                result.append(f"{path}:{node.lineno}: give each of `{ast.unparse(node)}` a line")
    return result


def _form(value: str) -> str:
    """An expression with a name in the place of each name, number and string."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|[\w.]*\w", "_", value)
    text = re.sub(r"(?<![\w)\] ])[-~]", "", text)  # a sign
    return re.sub(r"[-+*/%|&^<>]+", "+", text)


RULES = (arrows, circles, doubles, mixed_assignments)


def violations() -> list[str]:
    """What breaks a rule now, in lines."""
    lines = [line for rule in RULES for line in sorted(rule(sources()))]
    return lines + sorted(script_arrows(sources(), scripts()))


if __name__ == "__main__":
    broken = violations()
    print("\n".join(broken) or "The rules of the house are kept.")
    sys.exit(bool(broken))
