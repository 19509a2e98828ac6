"""Cell magics of a notebook: ``%%il`` assembles a cell's kernel, ``%%check`` runs it with every check on.

    %load_ext cypresskit.teach.magics

    %%il scale                          the cell's IL becomes the Program `scale`

    %%check domain=(8, 8), inputs={0: a}, outputs={0: c}          the arguments are those of ck.check

A kernel that can't be assembled, and a slip in the arguments, is told as text with a caret, without a traceback. The
cell is only ever read as IL; the line after ``%%check`` is Python, as in any other cell. ``%%check`` leaves its result
in ``findings``.
"""

import ast
import builtins
import inspect
import keyword

from cypresskit.il import ILError, Program, assemble
from cypresskit.il.errors import nearest
from cypresskit.machine.checks import Findings, check

USAGE = "usage: %%check domain=(8, 8), inputs={0: a}, outputs={0: c}    with the arguments of ck.check"
ARGUMENTS = [name for name in inspect.signature(check).parameters if name != "program"]


def load_ipython_extension(shell) -> None:
    """Called by ``%load_ext``."""

    def il(line: str, cell: str) -> None:
        """``%%il name``: assemble the cell and bind the program to ``name``."""
        name = line.strip()
        if not name.isidentifier() or keyword.iskeyword(name) or hasattr(builtins, name):
            print("%%il takes a name for the program that isn't one of Python's own, as in `%%il scale`")
            return
        shell.user_ns.pop(name, None)  # so that no cell goes on with the program of before
        if program := _assembled(cell, f"{name}.il"):
            shell.user_ns[name] = program
            print(f"{name}: a {program.mode} kernel of {len(program.body)} instructions")

    def check_cell(line: str, cell: str) -> None:
        """``%%check domain=..., inputs=..., ...``: run the cell's kernel with every check on."""
        shell.user_ns.pop("findings", None)
        try:
            arguments = _arguments(line, shell.user_ns)
            if program := _assembled(cell, "cell.il"):
                findings: Findings = check(program, **arguments)
                shell.user_ns["findings"] = findings
                print(findings)
        except (TypeError, ValueError) as error:
            print(f"%%check: {error}\n{USAGE}")

    shell.register_magic_function(il, "cell", "il")
    shell.register_magic_function(check_cell, "cell", "check")


def _arguments(line: str, names: dict) -> dict:
    """The arguments that a line names, with their values; ``ValueError`` says what is wrong with it."""
    try:
        call = ast.parse(f"dict({line}\n)", mode="eval")
    except SyntaxError as error:
        column = (error.offset or 0) - len("dict(")  # 0 or less: our own bracket, or unknown
        caret = "\n    " + " " * (column - 1) + "^" if column > 0 and error.lineno == 1 else ""
        raise ValueError(f"{error.msg}\n    {line}{caret}") from None
    if not isinstance(call.body, ast.Call) or call.body.args:
        raise ValueError("every argument has a name, as in domain=(8, 8)")
    given = [word.arg for word in call.body.keywords]  # None: **more
    for name in filter(None, given):
        if name not in ARGUMENTS:
            raise ValueError(f"there is no argument `{name}`.{nearest(name, ARGUMENTS)}")
    if not {"domain", None} & set(given):
        raise ValueError("`domain` is missing: over which work-items does the kernel run?")
    try:
        return eval(compile(call, "%%check", "eval"), {**names, "dict": dict})
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {getattr(error, 'msg', error)}") from None


def _assembled(text: str, name: str) -> Program | None:
    """The program of a cell, whose first line, the magic's own, counts as its editor counts it."""
    try:
        return assemble("\n" + text, name)
    except ILError as error:
        print(error)
        return None
