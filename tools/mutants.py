"""Change the package at random, one small place at a time, and see whether its tests notice.

    python -m tools.mutants --count 60 --seed 7     # or: make mutants

Each mutant is one expression of one function: a comparison's other side, a term left out, a number
one larger, two arguments exchanged, `and` for `or`, a `not` dropped. First the tests of core and
course run once, with coverage, in a copy of the working tree. Then each mutant stands in a copy,
and the tests that ran its line, and passed, run until one fails. Of code that another process runs,
or that numba compiled, no coverage is seen: then the tests that ran a line of its file, or else of
its folder. What lives is printed, with its diff: it is equivalent, changes no result, or shows
which law is missing. Nothing is known of a mutant that no test noticed if a test that might doesn't
pass here even without it: that is said, and the exit status is 1.
"""

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coverage import CoverageData

ROOT = Path(__file__).resolve().parent.parent
MAX_TESTS = 240  # per mutant
SECONDS = 900  # for a mutant's tests, all of which passed before: what takes longer hangs
WORDS = ("noticed", "LIVES", "CAN'T TELL", "no test")
UNABLE = ("failed", "error", "skipped")  # pytest's words for tests that can't notice a mutant
OUTCOMES = "MUTANTS_OUTCOMES"  # in the environment: where a run writes the outcomes of its tests
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


@dataclass(frozen=True)
class Run:
    """What pytest said: its exit code, what it printed, and its tests by their outcomes."""

    code: int
    printed: str
    tests: dict[str, set[str]]

    def of(self, *outcomes: str) -> set[str]:
        """Return the tests with one of some outcomes."""
        return set().union(*(self.tests.get(outcome, ()) for outcome in outcomes))


def pytest_unconfigure(config: Any) -> None:
    """Write which tests had which outcome; this module is a plugin of the runs that it starts."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter and OUTCOMES in os.environ:
        reports = {name: reporter.stats.get(name, ()) for name in (*UNABLE, "passed")}
        tests = {name: [report.nodeid for report in each] for name, each in reports.items()}
        Path(os.environ[OUTCOMES]).write_text(json.dumps(tests), "utf-8")


def run_tests(copy: Path, *arguments: str, timeout: float | None = None) -> Run:
    """Run pytest in a copy of the working tree."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not nightly"]
    outcomes = copy / "outcomes.json"
    done = subprocess.run(
        [*command, "-p", "tools.mutants", *arguments],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy), OUTCOMES: str(outcomes)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    found = json.loads(outcomes.read_text("utf-8")) if outcomes.exists() else {}
    return Run(done.returncode, done.stdout + done.stderr, {k: {*v} for k, v in found.items()})


@dataclass(frozen=True)
class Chosen:
    """The tests that are to notice a mutant, and those that can't: without it they don't pass."""

    tests: list[str]
    unable: set[str]


class Tests:
    """Which tests run which lines, by one run of all of them with coverage."""

    def __init__(self, copy: Path, jobs: int):
        spread = ("-n", str(jobs), "--dist", "worksteal")
        coverage = ("--cov=cypresskit", "--cov-context=test", "--cov-report=")
        run = run_tests(copy, "tests/core", "tests/course", *spread, *coverage)
        self.passed = run.of("passed") - run.of(*UNABLE)
        self.unable = run.of(*UNABLE)
        for test in sorted(self.unable):
            print("doesn't pass without a mutant:", test, flush=True)
        self.copy = copy
        self.data = CoverageData(str(copy / ".coverage"))
        self.data.read()
        seen = {context.rpartition("|")[0] for context in self.data.measured_contexts()} - {""}
        self.functions = {test.partition("[")[0] for test in seen}
        self.unseen = (self.passed - seen) | self.unable
        has_lost_lines = " crashed while running " in run.printed
        if run.code > 1 or has_lost_lines or not seen:
            sys.exit(f"{run.printed}\nThe tests can't be run here, so no mutant is tried.")

    def of(self, mutant: Mutant, seed: int) -> Chosen:
        """Return tests of a mutant, spread over all that run its line, or its file, or folder. Of
        tests of which no coverage is seen, or that don't pass here, those: whose function's other
        cases do, or whose file's tests if none of these cases is seen either.
        """
        file = self.copy / mutant.path
        reached = self.by_line(file).get(mutant.line, set())
        if not reached & self.passed:
            reached |= self.of_file(file)
        if not reached & self.passed:
            reached |= set().union(*map(self.of_file, file.parent.glob("*.py")))
        places = {test.partition(end)[0] for test in reached for end in ("[", "::")}
        reached |= {test for test in self.unseen if self.place(test) in places}
        tests = sorted(reached & self.passed)
        spread = random.Random(seed).sample(tests, min(MAX_TESTS, len(tests)))
        return Chosen(spread, reached & self.unable)

    def place(self, test: str) -> str:
        """Return a test's function if lines are known that this ran, or else its file."""
        function = test.partition("[")[0]
        return function if function in self.functions else test.partition("::")[0]

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


def outcome(mutant: Mutant, chosen: Chosen) -> tuple[str, str]:
    """Run tests with a mutant in a copy of its own. Return one of WORDS, and why: it lives only if
    all its tests passed with it, and there is none that can't pass here.
    """
    ran = f"{len(chosen.tests)} tests ran"
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_tree(Path(folder))
        file = copy / mutant.path
        text = file.read_text("utf-8")
        file.write_text(mutant.applied(text), "utf-8")
        try:
            run = run_tests(copy, "-x", *chosen.tests, timeout=SECONDS) if chosen.tests else None
        except subprocess.TimeoutExpired:
            return "noticed", f"no end after {SECONDS} s"
        if run and run.code:
            file.write_text(text, "utf-8")
            if run.code == 1 or not run_tests(copy, "--collect-only", *chosen.tests).code:
                return "noticed", ran
            return "CAN'T TELL", f"without it pytest fails, too: {run.printed}"
    if chosen.unable:
        return "CAN'T TELL", f"{ran}; {len(chosen.unable)} don't pass here: {min(chosen.unable)}"
    if not run:
        return "no test", ran
    if run.of("passed") != {*chosen.tests}:
        return "CAN'T TELL", f"of {len(chosen.tests)} tests {len(run.of('passed'))} ran"
    return "LIVES", ran


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
    parser.add_argument("--draw", action="store_true", help="print the mutants, and try none")
    options = parser.parse_args(arguments)
    drawn = draw(options.count, options.seed)
    if options.draw:
        print(*(f"{mutant}\n{mutant.difference()}" for mutant in drawn), sep="\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        tests = Tests(copy_tree(Path(folder)), options.jobs)
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
    if counts["CAN'T TELL"]:
        sys.exit(
            "Tests that don't pass here might notice some: mend that first, then run it again."
        )


if __name__ == "__main__":
    main()
