"""Change the package at random, one small place at a time, and see whether its tests notice.

    python -m tools.mutants --count 60 --seed 7     # or: make mutants

Each mutant is one expression of one function: a comparison's other side, a term left out, a number
one larger, two arguments exchanged, `and` for `or`, a `not` dropped. It stands in a copy of the
working tree, whose tests of that module (`tests_of`) run until the first fails. What lives is
printed at the end: it is equivalent, changes no result, or shows which law is missing.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_FILES = 4  # of tests, per mutant
SECONDS = 240  # for a mutant's tests; what takes longer hangs, which is noticed
OPPOSITE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ORDERED = {"isinstance", "getattr", "setattr", "hasattr", "issubclass", "range", "zip"}


@dataclass(frozen=True)
class Mutant:
    """An expression of a file, from its first byte on, and what takes its place."""

    path: Path
    line: int
    start: int
    end: int
    kind: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {self.old()} -> {self.new}"

    def old(self) -> str:
        line = (ROOT / self.path).read_text("utf-8").splitlines()[self.line - 1]
        return line.encode()[self.start : self.end].decode()

    def applied(self, text: str) -> str:
        lines = text.split("\n")
        line = lines[self.line - 1].encode()
        changed = line[: self.start] + f"({self.new})".encode() + line[self.end :]
        lines[self.line - 1] = changed.decode()
        return "\n".join(lines)


def changed(node: ast.expr) -> tuple[str, str] | None:
    """Return the kind of an expression's change, and its new source; None if there is none."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPPOSITE:
            other = ast.Compare(left, [OPPOSITE[type(op)]()], [right])
            return "compared otherwise", ast.unparse(other)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv()):
            return "a term less", ast.unparse(left)
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return "one more", str(value + 1)
        case ast.Call(func=func, args=[first, second, *rest], keywords=words) if (
            ast.unparse(func) not in ORDERED
        ):
            swapped = ast.Call(func, [second, first, *rest], words)
            return "arguments exchanged", ast.unparse(swapped)
        case ast.BoolOp(op=op, values=values):
            other_op = ast.Or() if isinstance(op, ast.And) else ast.And()
            return "and for or", ast.unparse(ast.BoolOp(other_op, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return "not dropped", ast.unparse(operand)
    return None


def expressions(tree: ast.AST, is_in_function: bool = False) -> Iterator[ast.expr]:
    """Yield the expressions in functions, but for what raises, asserts, or formats a text."""
    if isinstance(tree, ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
        return
    is_in_function = is_in_function or isinstance(tree, ast.FunctionDef)
    if is_in_function and isinstance(tree, ast.expr):
        yield tree
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from expressions(child, is_in_function)


def mutants(path: Path) -> dict[str, list[Mutant]]:
    """Return the mutants of a file, relative to the root, by their kinds."""
    found: dict[str, list[Mutant]] = {}
    for node in expressions(ast.parse((ROOT / path).read_text("utf-8"))):
        change = changed(node)
        if change and node.lineno == node.end_lineno and "\n" not in change[1]:
            kind, new = change
            assert node.end_col_offset is not None
            made = Mutant(path, node.lineno, node.col_offset, node.end_col_offset, kind, new)
            found.setdefault(kind, []).append(made)
    return found


def draw(count: int, seed: int) -> list[Mutant]:
    """Return mutants of random files, larger ones more often, and of all kinds alike."""
    chance = random.Random(seed)
    files = sorted((ROOT / "cypresskit").rglob("*.py"))
    files = [file for file in files if mutants(file.relative_to(ROOT))]
    sizes = [file.stat().st_size for file in files]
    drawn: list[Mutant] = []
    while len(drawn) < count:
        (file,) = chance.choices(files, sizes)
        by_kind = mutants(file.relative_to(ROOT))
        drawn.append(chance.choice(by_kind[chance.choice(sorted(by_kind))]))
    return drawn


def tests_of(path: Path) -> list[Path]:
    """Return the files of tests for a module: those of its name, and those that import it most."""
    parts = [part for part in path.with_suffix("").parts[1:] if part != "__init__"]
    module = ".".join(["cypresskit", *parts])
    names = {"_".join(parts), "_".join(parts[-2:]), parts[-1], *parts[:1]} if parts else set()

    def rank(file: Path) -> tuple:
        text = file.read_text("utf-8")
        imports = text.count(module) + text.count(f"from {module.rpartition('.')[0]} import")
        near = file.stem.removeprefix("test_") in names
        return (near, imports, *(part in file.stem for part in parts[-1:]), file.stem)

    files = sorted((ROOT / "tests").glob("*/test_*.py"), key=rank, reverse=True)
    return [file.relative_to(ROOT) for file in files if any(rank(file)[:2])][:MAX_FILES]


def is_noticed(mutant: Mutant, copy: Path) -> bool:
    """Run the tests of a mutant's module in the copy, with it in place."""
    file = copy / mutant.path
    text = file.read_text("utf-8")
    file.write_text(mutant.applied(text), "utf-8")
    command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "-m", "not nightly"]
    try:
        done = subprocess.run(
            [*command, *map(str, tests_of(mutant.path))],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy)},
            capture_output=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(text, "utf-8")
    return done.returncode == 1


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    chosen = parser.parse_args(arguments)
    lived = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        ignored = shutil.ignore_patterns(".*", "node_modules", "site", "build")
        shutil.copytree(ROOT, copy, ignore=ignored, symlinks=True)
        for mutant in draw(chosen.count, chosen.seed):
            noticed = is_noticed(mutant, copy)
            print("noticed" if noticed else "LIVES", mutant, flush=True)
            lived += [] if noticed else [mutant]
    print(f"\nseed {chosen.seed}: {len(lived)} of {chosen.count} live")


if __name__ == "__main__":
    main()
