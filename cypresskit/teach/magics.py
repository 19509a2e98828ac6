"""Cell magics of a notebook: ``%%il`` assembles a cell's kernel, ``%%check`` runs it with every check on.

    %load_ext cypresskit.teach.magics

    %%il scale                          the cell's IL becomes the Program `scale`

    %%check domain=(8, 8), inputs={0: a}, outputs={0: c}          the arguments are those of ck.check

A kernel that can't be assembled is told as text with a caret, without a traceback. The cell is only ever read as IL;
the line after ``%%check`` is Python, as in any other cell. ``%%check`` leaves its result in ``findings``.
"""

from cypresskit.il import ILError, Program, assemble
from cypresskit.machine.checks import Findings, check


def load_ipython_extension(shell) -> None:
    """Called by ``%load_ext``."""

    def il(line: str, cell: str) -> None:
        """``%%il name``: assemble the cell and bind the program to ``name``."""
        name = line.strip()
        if not name.isidentifier():
            print("%%il takes a name for the program, as in `%%il scale`")
            return
        shell.user_ns.pop(name, None)  # so that no cell goes on with the program of before
        if program := _assembled(cell, f"{name}.il"):
            shell.user_ns[name] = program
            print(f"{name}: a {program.mode} kernel of {len(program.body)} instructions")

    def check_cell(line: str, cell: str) -> None:
        """``%%check domain=..., inputs=..., ...``: run the cell's kernel with every check on."""
        shell.user_ns.pop("findings", None)
        arguments = eval(compile(f"dict({line})", "%%check", "eval"), shell.user_ns)
        if program := _assembled(cell, "cell.il"):
            findings: Findings = check(program, **arguments)
            shell.user_ns["findings"] = findings
            print(findings)

    shell.register_magic_function(il, "cell", "il")
    shell.register_magic_function(check_cell, "cell", "check")


def _assembled(text: str, name: str) -> Program | None:
    try:
        return assemble(text, name)
    except ILError as error:
        print(error)
        return None
