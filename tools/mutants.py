"""Change the package at random, one small place at a time, and see whether its tests notice.

    python -m tools.mutants --count 60 --seed 7     # or: make mutants

Each mutant is one expression of one function: a comparison's other side, a term left out, a number
one larger, two arguments exchanged, `and` for `or`, a `not` dropped. First the tests of core and
course run once, with coverage, in a copy of the working tree; all must pass, and what can't pass on
this computer is left out by `--deselect`, which pytest gets. Then each mutant stands in a copy, and
the tests that ran its line run until one fails. Of code that another process runs, or that numba
compiled, no coverage is seen: then the tests that ran a line of its file, or else of its folder.
What lives is printed, with its diff: it is equivalent, changes no result, or shows which law is
missing.
"""

import argparse
import ast
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).resolve().parent.parent
MAX_TESTS = 240  # per mutant
SECONDS = 900  # for a mutant's tests, all of which passed before: what takes longer hangs
WORDS = ("noticed", "LIVES", "no test")
DAY = f"--day={date.today().toordinal()}"  # the same draw of tests in all runs
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
#: Functions whose arguments can't be exchanged, or always can.
KEPT = {"isinstance", "getattr", "setattr", "hasattr", "issubclass", "range", "zip", "min", "max"}


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

    def difference(self) -> str:
        """Return what it changes in its file, as a diff."""
        text = (ROOT / self.path).read_text("utf-8")
        new = self.applied(text).splitlines()
        return "\n".join(difflib.unified_diff(text.splitlines(), new, lineterm="", n=2))

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
            ast.unparse(func) not in KEPT
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


def run_tests(
    copy: Path, *arguments: str, timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a copy of the working tree."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not nightly"]
    return subprocess.run(
        [*command, DAY, *arguments],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


class Tests:
    """Which tests run which lines, by one run of all of them with coverage."""

    def __init__(self, copy: Path, jobs: int, left_out: Sequence[str]):
        chosen = ("tests/core", "tests/course", *(f"--deselect={test}" for test in left_out))
        spread = ("-n", str(jobs), "--dist", "worksteal")
        coverage = ("--cov=cypresskit", "--cov-context=test", "--cov-report=")
        run = run_tests(copy, *chosen, *spread, *coverage, "-rfEs")
        if run.returncode or "no test was skipped" not in run.stdout:
            sys.exit(f"{run.stdout}{run.stderr}\nMend that first: all tests must pass.")
        self.copy = copy
        self.data = CoverageData(str(copy / ".coverage"))
        self.data.read()

    def of(self, mutant: Mutant, seed: int) -> list[str]:
        """Return tests of a mutant, spread over all that run its line, or its file, or folder."""
        file = self.copy / mutant.path
        tests = self.by_line(file).get(mutant.line) or self.of_file(file)
        tests = tests or set().union(*map(self.of_file, file.parent.glob("*.py")))
        return random.Random(seed).sample(sorted(tests), min(MAX_TESTS, len(tests)))

    def by_line(self, file: Path) -> dict[int, set[str]]:
        """Return the tests that run each line of a file."""
        by_line = self.data.contexts_by_lineno(str(file))
        return {
            line: {context.rpartition("|")[0] for context in contexts} - {""}
            for line, contexts in by_line.items()
        }

    def of_file(self, file: Path) -> set[str]:
        """Return the tests that run some line of a file."""
        return set().union(*self.by_line(file).values())


def outcome(mutant: Mutant, tests: Sequence[str]) -> tuple[str, str]:
    """Run tests with a mutant in a copy of its own. Return one of WORDS, and why."""
    why = f"{len(tests)} tests ran"
    if not tests:
        return "no test", why
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_tree(Path(folder))
        file = copy / mutant.path
        file.write_text(mutant.applied(file.read_text("utf-8")), "utf-8")
        try:
            run = run_tests(copy, "-x", *tests, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "noticed", f"no end after {SECONDS} s"
    return "noticed" if run.returncode else "LIVES", why


def copy_tree(folder: Path) -> Path:
    """Return a copy of the working tree below a folder."""
    ignored = shutil.ignore_patterns(".*", "node_modules", "site", "build")
    return shutil.copytree(ROOT, folder / "copy", ignore=ignored, symlinks=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000))
    parser.add_argument("--jobs", type=int, default=1, help="tests that run side by side")
    parser.add_argument("--deselect", nargs="+", default=[], help="tests that can't pass here")
    parser.add_argument("--draw", action="store_true", help="print the mutants, and try none")
    options = parser.parse_args(arguments)
    drawn = draw(options.count, options.seed)
    if options.draw:
        print(*(f"{mutant}\n{mutant.difference()}" for mutant in drawn), sep="\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        tests = Tests(copy_tree(Path(folder)), options.jobs, options.deselect)
        chosen = [tests.of(mutant, options.seed) for mutant in drawn]
    counts = dict.fromkeys(WORDS, 0)
    with ThreadPoolExecutor(options.jobs) as pool:
        asked = zip(drawn, chosen, strict=True)
        decided = {pool.submit(outcome, mutant, found): mutant for mutant, found in asked}
        for future in as_completed(decided):
            mutant = decided[future]
            word, why = future.result()
            print(f"{word} {mutant} ({why})", flush=True)
            if word == "LIVES":
                print(mutant.difference(), flush=True)
            counts[word] += 1
    print(f"\nseed {options.seed}: {counts}")


if __name__ == "__main__":
    main()
