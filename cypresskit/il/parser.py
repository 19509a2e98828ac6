"""Assemble IL text into a ``Program``.

A line holds one statement: an opcode with its controls (``sample_resource(0)_sampler(0)``), then
operands separated by commas. ``_Assembler`` reads the statements and reports all faulty lines
together. If there are none, it checks the program as a whole: blocks that aren't closed, undeclared
names, registers that the mode doesn't have.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from cypresskit.il.cursor import BRACKETS, FaultAt, Line, bare_line, count, end_of_line
from cypresskit.il.declarations import MAX_LDS, read_declaration
from cypresskit.il.errors import Fault, ILError, did_you_mean
from cypresskit.il.macros import MAX_LENGTH, MacroExpansion
from cypresskit.il.names import name_faults
from cypresskit.il.opcodes import OPCODES, RELATIONS, Opcode, find_opcode
from cypresskit.il.other_languages import LOOP, suggest_statement, suggest_text
from cypresskit.il.program import (
    Controls,
    Dest,
    Instruction,
    Macro,
    Program,
    Source,
)
from cypresskit.il.registers import NO_REGISTER, read_dest, read_source
from cypresskit.il.unsupported import (
    FORM,
    MODIFIERS,
    explain_unknown,
    explain_unsupported,
)

#: Most characters of a text: a longer one is no kernel.
MAX_TEXT = 4_000_000
MAX_LINE = 2_000  # most characters of a line
MAX_FAULTS = 100  # most faults recorded
OFFSETS = range(-8, 8)  # texels that a fetch can add to a coordinate: five bits (ISA 5)
BLOCKS = {"loop": 1, "if": 1, "endloop": -1, "endif": -1}
HEADERS = {"il_ps_2_0": "pixel", "il_ps": "pixel", "il_cs_2_0": "compute", "il_cs": "compute"}

_STRANGE = re.compile(r"[^\t\r\f\v\x20-\x7e\ufeff]")
_MACRO = re.compile(r"mdef\b|mdef_", re.IGNORECASE)  # definitions may stand before the header
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Segments = list[tuple[str, str]]  # words, each with the text of the brackets after it


def assemble(text: str, name: str = "kernel.il", *, before: str = "") -> Program:
    """Read IL text into a ``Program``.

    Parameters
    ----------
    text
        The kernel.
    name
        The kernel's name in reports.
    before
        Lines to put in front of the text. They aren't counted: reports number the lines of ``text``
        from 1.

    Raises
    ------
    ILError
        With every faulty line, or every fault of the whole; each with line, column and what was
        expected.
    TypeError
        If ``text`` isn't a string.
    """
    given: object = text
    if not isinstance(given, str):
        what = f"assemble takes IL text as a str, not {type(given).__name__}"
        raise TypeError(f"{what}; read a file with Path.read_text()")
    if len(text) > MAX_TEXT:
        message = f"{len(text):,} characters are no kernel: at most {MAX_TEXT:,} are read"
        raise ILError(name, [Fault(1, 1, message, "")])
    return _Assembler(text, name, before).program()


class _Assembler:
    """Reads one text.

    Attributes
    ----------
    faults
        What was found so far.
    mode
        "pixel" or "compute"; "" before the header.
    instructions, macros, literals
        What was read so far; literals that a macro doesn't declare, as ``Program.literals``.
    declared
        What was declared so far, by the macro that it is in, if any, and what it is.
    macro, body
        The ``mdef`` that is open, if any, and its instructions so far.
    ended
        Whether ``end`` was read.
    closed
        What ended the code, so that no instruction may follow; "" before that.
    """

    def __init__(self, text: str, name: str, before: str):
        self.name = name
        self.lines = tuple(re.split(r"\r\n|\n|\r", text))
        self.before = before.splitlines()
        self.faults: list[Fault] = []
        self.mode = ""
        self.instructions: list[Instruction] = []
        self.macros: list[Macro] = []
        self.literals: dict[int, tuple[int, ...]] = {}
        self.declared: dict[tuple[Any, ...], Instruction] = {}
        self.macro: Instruction | None = None
        self.body: list[Instruction] = []
        self.ended = False
        self.closed = ""

    def program(self) -> Program:
        self._check_text()
        for number, text in enumerate([*self.before, *self.lines], 1 - len(self.before)):
            if len(self.faults) >= MAX_FAULTS:
                break
            self._line(number, text)
        if not self.faults:
            self._check_whole()
        self._report()
        expansion = MacroExpansion(self.instructions, self.macros)
        for line, message in expansion.faults:
            self._fault(line, message)
        self._report()
        kernel = self.mode, tuple(self.instructions), tuple(self.macros)
        expanded = tuple(expansion.instructions)
        program = Program(*kernel, self.name, self.lines, expanded, expansion.written)
        self._check_names(program)
        self._report()
        return program

    def _check_text(self) -> None:
        """Refuse a text that isn't IL, and one that is too long to be checked while its writer
        waits.
        """
        code = {n: bare for n, line in enumerate(self.lines, 1) if (bare := bare_line(line))}
        if not self.before and (cure := suggest_text([*code.values()])):
            self._fault(next(iter(code)), cure)
        for number in islice(code, MAX_LENGTH, None):
            self._fault(number, f"the kernel has more than {MAX_LENGTH:,} instructions")
            break
        self._report()

    def _check_whole(self) -> None:
        """Check that the kernel has a header and an end, and that its blocks nest."""
        if not self.mode:
            self._fault(
                1,
                "the kernel is empty: its first line is `il_ps_2_0` (pixel) or `il_cs_2_0`"
                " (compute)",
            )
        elif self.macro:
            self._fault(self.macro.line, "`mdef` without `mend`")
        elif not self.ended:
            self._fault(len(self.lines), "the kernel has no `end`")
        for block in (self.instructions, *(m.body for m in self.macros)):
            self._check_blocks(block)

    def _report(self) -> None:
        """Raise ``ILError`` if there are faults."""
        if self.faults:
            raise ILError(self.name, self.faults[:MAX_FAULTS])

    def _line(self, number: int, text: str) -> None:
        """Read one line, and record its fault if it has one."""
        line = Line(text, number, {} if self.macro else self.literals)
        try:
            if len(text) > MAX_LINE:
                many = f"this line has {len(text):,} characters: at most {MAX_LINE:,} are read"
                line.fail(many, 0)
            if not line.text[line.at :]:
                return
            if strange := _STRANGE.search(line.text):
                line.fail(_explain_character(strange[0]), strange.start())
            if not self.mode and not self.macro and not _MACRO.match(line.text, line.at):
                self.mode = _header(line)
            elif self.ended:
                self._misplaced(line, "nothing may follow `end`")
            else:
                known = _known_statement(line.text)
                self._place(replace(known, line=number) if known else _statement(line), line)
            _check_comment(text, line)
        except FaultAt as fault:
            said = {old.message for old in self.faults if NO_REGISTER in old.message}
            if str(fault) not in said:  # another IL's name of a register: once is enough
                self.faults.append(Fault(number, fault.column, str(fault), text[:MAX_LINE]))
            self.mode = self.mode or "compute"

    def _place(self, instruction: Instruction, line: Line) -> None:
        """Add an instruction to the program, or to the macro that is open."""
        opcode = instruction.opcode
        if opcode.startswith("dcl_"):
            self._declare(instruction, line)
        if opcode == "mend":
            if not self.macro:
                self._misplaced(line, "`mend` without `mdef`")
            self._close_macro()
        elif opcode == "mdef":
            if self.macro:
                self._misplaced(line, "`mdef` inside a macro: close the first with `mend`")
            self._close_macro()
            self.macro = instruction
        elif self.macro:
            if opcode == "ret_dyn":
                self._misplaced(line, "`ret_dyn` inside a macro: close it with `mend`")
            if opcode == "mcall":
                self._misplaced(line, "`mcall` inside a macro: write out what it would do there")
            self.body.append(instruction)
        elif opcode in ("ret_dyn", "endmain", "end"):
            self._end(opcode, line)
        elif self.closed:
            self._misplaced(line, self.closed)
        else:
            self.instructions.append(instruction)
            if opcode == "dcl_literal" and instruction.dest:
                self.literals[instruction.dest.register.index] = instruction.numbers

    def _declare(self, instruction: Instruction, line: Line) -> None:
        """Raise ``FaultAt`` for a second declaration of a thing with other numbers."""
        what = str(instruction.dest), instruction.controls.id
        if instruction.opcode == "dcl_cb":
            what = "cb", instruction.numbers[0]
        key = len(self.macros) if self.macro else None, instruction.opcode, *what
        first = self.declared.setdefault(key, instruction)
        if first.numbers != instruction.numbers:
            written = line.text.strip().partition(",")[0]
            line.fail(
                f"`{written}`: line {first.line} declares it with other numbers. Leave one of the"
                " two out, or give it another number",
                line.start,
            )

    def _end(self, opcode: str, line: Line) -> None:
        """End the kernel, or its instructions."""
        self.ended = opcode == "end"
        self.closed = "nothing may follow `endmain` but `end`"
        if opcode == "ret_dyn":
            self.closed = (
                "a return before the end of the kernel is not in cypresskit's subset: `ret_dyn` is"
                " its last instruction"
            )
            if sum(BLOCKS.get(i.op.flow, 0) for i in self.instructions) > 0:
                self._misplaced(line, self.closed)

    def _close_macro(self) -> None:
        """Add the macro that is open, if any, to ``macros``."""
        if self.macro:
            number, outputs, inputs = self.macro.numbers
            body = tuple(self.body)
            self.macros.append(Macro(number, outputs, inputs, body, self.macro.line))
        self.macro = None
        self.body = []

    def _misplaced(self, line: Line, message: str) -> None:
        """Raise ``FaultAt`` for a statement that may not be here, unless an earlier faulty line may
        be the reason.
        """
        if not self.faults:
            line.fail(message, line.start)

    def _fault(self, line: int, message: str, word: str = "") -> None:
        """Record a fault of the whole: at ``word`` if the line has it, else at the line's first
        word.
        """
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        place = re.search(rf"\b{re.escape(word)}(?![0-9])", text, re.IGNORECASE) if word else None
        column = place.start() + 1 if place else Line(text, line).at + 1
        self.faults.append(Fault(line, column, message, text))

    def _check_blocks(self, instructions: Sequence[Instruction]) -> None:
        """Check that loops and ifs nest, and that ``break`` is in a loop."""
        stack: list[Instruction] = []
        openers = {"endloop": ("loop",), "endif": ("if", "else"), "else": ("if",)}
        for i in instructions:
            flow = i.op.flow
            top = stack[-1] if stack else None
            if flow in openers and (not top or top.op.flow not in openers[flow]):
                inside = f" (inside `{top.opcode}` of line {top.line})" if top else ""
                self._fault(
                    i.line,
                    f"`{flow}` without {'`whileloop`' if flow == 'endloop' else 'an if'}{inside}",
                )
                continue
            if flow in openers:
                stack.pop()
            if flow in ("loop", "if", "else"):
                stack.append(i)
            if flow == "break" and not any(s.op.flow == "loop" for s in stack):
                self._fault(i.line, f"`{i.opcode}` outside a loop")
        for i in stack:
            end = "endloop" if i.op.flow == "loop" else "endif"
            self._fault(i.line, f"`{i.opcode}` is never closed by `{end}`")

    def _check_names(self, program: Program) -> None:
        """Check that every name is declared and exists in the kernel's mode."""
        if program.lds_bytes > MAX_LDS:
            last = [i.line for i in program.declarations if i.opcode == "dcl_lds"][-1]
            self._fault(
                last,
                f"the LDS arrays have {program.lds_bytes} bytes together: a workgroup has {MAX_LDS}"
                " at most",
            )
        reported: set[tuple[int, str]] = set()
        for i in program.body:
            for word, message in name_faults(i, program):
                word, message = program.as_written(word), program.as_written(message)
                if (i.line, message) not in reported:
                    reported.add((i.line, message))
                    self._fault(i.line, message, word)


def _explain_character(character: str) -> str:
    """Return the message about a character that may only be in a comment."""
    shown = f"`{character}`, " if character.isprintable() else ""
    name = unicodedata.name(character, "").lower()
    return (
        f"the character {shown}U+{ord(character):04X}{f' ({name})' if name else ''} can only stand"
        " in a comment"
    )


def _header(line: Line) -> str:
    """Read the kernel's first line. Return its mode."""
    first_words = line.rest()
    match = line.take(_WORD)
    word = match.group().lower() if match else ""
    if word in HEADERS:
        return HEADERS[word]
    return line.fail(
        f"expected `il_ps_2_0` (pixel) or `il_cs_2_0` (compute) first, found {first_words}", 0
    )


def _check_comment(text: str, line: Line) -> None:
    """Raise ``FaultAt`` if what follows a line's ``;`` is an instruction, as C would read it."""
    code, _, comment = text.partition(";")
    inside = Line(comment, line.number, line.literals)
    if code.rstrip() != line.text or not find_opcode(inside.text[inside.at :]):
        return
    try:
        has_registers = any(_statement(inside).registers)
    except FaultAt:
        return
    if has_registers:
        line.fail("a line holds one instruction: what follows `;` is a comment", len(code))


@lru_cache(maxsize=4096)
def _known_statement(text: str) -> Instruction | None:
    """Return the statement of a line, or None if it is faulty. A text that is edited is mostly the
    one before: of four kernels' assembling, reading each line anew takes 70 to 78 %.
    """
    with suppress(FaultAt):
        return _statement(Line(text, 0))
    return None


def _statement(line: Line) -> Instruction:
    """Read one statement. ``mdef`` and ``mend`` are returned as instructions, too."""
    start = line.at
    segments = _head(line)
    word = segments[0][0]
    written = line.text[start : start + len(word)]
    if word.startswith("il_"):
        line.fail(f"`{word}` is the kernel's header: only the first line has it", start)
    if word in ("mdef", "mend"):
        sizes = {
            name: count(value, line, start)
            for name, value in _controls_written("", segments)
            if value
        }
        for wrong in set(sizes) - {"k", "out", "in"}:
            line.fail(f"`{word}` has no control `_{wrong}`: expected `mdef(7)_out(1)_in(2)`", start)
        if word == "mdef" and "k" not in sizes:
            line.fail("`mdef` needs a macro's number, as in `mdef(7)_out(1)_in(2)`", start)
        end_of_line(line)
        numbers = tuple(sizes.get(name, 0) for name in ("k", "out", "in"))
        return Instruction(word, numbers=numbers, line=line.number)
    name = find_opcode(word)
    if not name or word.startswith(("else", "end")):
        if foreign := suggest_statement(line.text[start:]):
            line.fail(
                explain_unsupported(word) or f"`{_quoted(line.text[start:])}` is no IL: {foreign}",
                start,
            )
    if not name:
        known = [*OPCODES, "mdef", "mend"]
        operands = line.text[line.at :].count(",") + 1
        line.fail(explain_unknown(written, known, operands), start)
    op = OPCODES[name]
    bracketed = _controls_written(word[len(name) + 1 :], segments)
    if op.kind == "declaration":
        if why := explain_unsupported(word, op.name):
            line.fail(why, start)
        return read_declaration(op, dict(bracketed), line, start)
    controls = _controls(op, word, bracketed, line, start)
    if op.name == "mcall":
        return _macro_call(controls, line)
    dest, sources = _operands(op, line)
    is_bare = op.flow in ("loop", "break") and not op.sources
    end_of_line(line, LOOP if is_bare else f"the form is `{_form(op)}`")
    return Instruction(op.name, dest, sources, controls, line=line.number)


def _head(line: Line) -> Segments:
    """Read the words up to the operands, each with the text of the brackets after it:
    ``a_b(1)_c(2)`` gives [("a_b", "1"), ("_c", "2")].
    """
    segments: Segments = []
    more = True
    while more and (match := line.take(_WORD)):
        brackets = line.take(BRACKETS)
        segments.append((match.group().lower(), brackets.group(1).strip() if brackets else ""))
        more = bool(brackets) and line.text.startswith("_", line.at)
    if not segments:
        instead = suggest_statement(line.text[line.at :]) or FORM
        line.fail(f"expected an instruction, found {line.rest()}: {instead}")
    return segments


def _quoted(statement: str) -> str:
    """Return the first words of a statement that isn't IL, for a message."""
    match = re.match(r"\w+(\s+(if|loop|while|for)\b)?(\.\w+)*(\s*[-+*/%&|^]?=(?!=))?", statement)
    return match[0] if match else statement[:24]


def _controls_written(suffix: str, segments: Segments) -> Segments:
    """Return the controls after an opcode's name, each with the text of its brackets, or "".

    ``suffix`` is what follows the name up to the first bracket. The bracket belongs to the last
    control before it: in ``sample_resource(0)_sampler(1)`` the suffix is "resource". A bracket
    right after the name holds a macro's number, ``k``.
    """
    written: Segments = []
    for words, bracket in [(suffix, segments[0][1]), *segments[1:]]:
        names = [name for name in words.split("_") if name] or (["k"] if bracket else [])
        written += zip(names, [*[""] * (len(names) - 1), bracket])
    return written


def _controls(op: Opcode, word: str, written: list[Any], line: Line, at: int) -> Controls:
    """Return the controls that are ``written`` after the opcode's name in ``word``."""
    controls: dict[str, Any] = {}
    for name, value in written:
        if name in op.controls:
            if name != "coordtype":
                controls[name] = _control(name, value, line, at)
            elif value.lower() != "unnormalized":  # the declaration of the resource says it, too
                expected = "coordinates count texels: expected `_coordtype(unnormalized)`"
                line.fail(f"`_coordtype({value})`: {expected}", at)
        elif op.kind == "alu" and name == "ieee":
            _check_bare(name, value, line, at)  # every operation here is IEEE already
        elif op.kind == "alu" and (cure := MODIFIERS.get(name)):
            line.fail(f"`_{name}` is not in cypresskit's subset of AMD's IL: {cure}", at)
        elif name == "k":
            line.fail(f"`{op.name}` takes nothing in brackets: the form is `{_form(op)}`", at)
        else:
            longer = [f"`{other}`" for other in OPCODES if other.startswith(f"{op.name}_")]
            longer = longer or [f"`_{control}`" for control in op.controls]
            are = "is" if longer[1:] == [] else "are"
            others = f" There {are} {', '.join(longer)}." if longer else ""
            guess = did_you_mean(name, op.controls) or others
            line.fail(
                explain_unsupported(word, op.name)
                or f"`{op.name}` has no control `_{name}`.{guess}",
                at,
            )
    for name in op.needs:
        if name not in controls:
            lacks = f"`{op.name}` needs `_{name}(...)`"
            lacks += f", as in `{_form(op)}`" * (name != "relop")
            line.fail(lacks if name != "k" else "`mcall` needs a number: `mcall(7)`", at)
    if op.kind == "fence" and not controls:
        line.fail(
            "`fence` needs a name for what it waits for: `fence_threads_lds`, `fence_lds` or"
            " `fence_memory`",
            at,
        )
    return Controls(**controls)


def _check_bare(name: str, value: str, line: Line, at: int) -> None:
    """Raise ``FaultAt`` if a control that takes no brackets has some."""
    if value:
        line.fail(f"`_{name}` has nothing in brackets, found `({value})`", at)


def _control(name: str, value: str, line: Line, at: int) -> int | bool | str | tuple[int, ...]:
    """Return the value of a control from the text of its brackets."""
    if name == "aoffimmi":
        parts = [p.strip() for p in value.split(",")]
        if len(parts) != 3 or not all(re.fullmatch(r"[-+]?[0-9]{1,3}(\.0*)?", p) for p in parts):
            line.fail(
                "`aoffimmi` takes three whole numbers, as in `_aoffimmi(1,0,0)`, found"
                f" `({value})`",
                at,
            )
        offsets = tuple(int(float(p)) for p in parts)
        if not all(offset in OFFSETS for offset in offsets):
            line.fail(
                f"`aoffimmi({value})`: a fetch has room for offsets of {OFFSETS[0]} to"
                f" {OFFSETS[-1]} texels along each axis; add what lies farther to the coordinate",
                at,
            )
        return offsets
    if name == "relop":
        if value.lower() not in RELATIONS:
            line.fail(f"`relop` is one of {', '.join(RELATIONS)}, found `{value}`", at)
        return value.lower()
    if name in ("threads", "lds", "memory"):
        _check_bare(name, value, line, at)
        return True
    return count(value, line, at)


def _form(op: Opcode) -> str:
    """Return the form of an instruction: ``mad dest, source 1, source 2, source 3``."""
    names = ["dest"] if op.result != "-" or (op.store and op.words > 1) else []
    names += [f"source {n + 1}" for n in range(len(op.sources))]
    name = op.name + {"fetch": "_resource(0)_sampler(0)", "lds": "_id(0)"}.get(op.kind, "")
    if op.kind == "fetch":
        names = ["dest", "r0.xy00"]
    return f"{name} {', '.join(names)}".strip()


def _operands(op: Opcode, line: Line) -> tuple[Dest | None, tuple[Source, ...]]:
    """Read the destination, if the opcode has one, and the sources."""
    if line.text.startswith(".", line.at):
        line.fail(f"`{op.name}` has its type in its name: leave out {line.rest()}")
    dest = read_dest(line, op) if op.result != "-" else None
    sources: list[Source] = []
    for n in range(len(op.sources)):
        if n and op.name == "lds_load_vec" and not line.text[line.at :].strip():
            break  # raw LDS needs no offset
        if n or dest:
            after = f"source {n}" if n else "the destination"
            line.expect(",", f"after {after} (`{_form(op)}`)")
        line.skip()
        start = line.at
        if op.store and line.text[start:].lower().startswith("mem"):
            line.fail(
                f"`mem` can't be read: `{op.name}` has no destination, but an address and a value,"
                f" as in `{op.name}_id(0) r0.x, r1.x`",
                start,
            )
        sources.append(read_source(line, op.sources[n] == "d"))
        if op.name == "rcp":  # reads only the last component (IL specification, 7.11)
            sources[n] = replace(sources[n], swizzle=sources[n].swizzle[3] * 4)
    if op.name == "lds_load_vec" and len(sources) == 1:
        sources.append(Source(sources[0].register, "0000"))
    return dest, tuple(sources)


def _macro_call(controls: Controls, line: Line) -> Instruction:
    """Read the outputs and inputs of ``mcall``."""

    def operands(read: Callable[..., Any], what: str) -> tuple[Any, ...]:
        line.expect("(", f"before the list of {what}, as in `mcall(7) (r1), (r2, r3)`")
        operands_read: list[Any] = []
        while not line.accept(")"):
            if operands_read:
                line.expect(",", f"or `)` in the list of {what}")
            operands_read.append(read())
        return tuple(operands_read)

    line.accept(",")
    outputs = operands(lambda: read_dest(line, OPCODES["mov"]), "outputs")
    line.expect(",", "between the outputs and the inputs")
    inputs = operands(lambda: read_source(line), "inputs")
    end_of_line(line)
    return Instruction("mcall", None, inputs, controls, outputs=outputs, line=line.number)
