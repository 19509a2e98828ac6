"""Text to ``Program``: one statement a line, every fault collected before any is raised.

A statement is an opcode with its bracketed controls (``sample_resource(0)_sampler(0)``), then operands separated by
commas. ``Line`` is a cursor over one source line; ``_Assembler`` reads statements, then checks what only the whole
program can tell: blocks that don't close, names never declared, registers that the mode doesn't have.

A short swizzle is filled to four letters by repeating it: ``x`` gives ``xxxx``, ``zw`` gives ``zwzw``, ``xyz`` gives
``xyzz``. A short mask is read from the left, a letter jumping to its own place: ``y_1`` is ``_y_1``.
"""

import re
import struct

from cypresskit.il.errors import Fault, ILError, nearest
from cypresskit.il.opcodes import OPCODES, REFUSED, RELOPS, Opcode
from cypresskit.il.program import LETTERS, Dest, Instruction, Macro, Program, Register, Source

MAX_TEXT = 4_000_000  # characters of a kernel: beyond it something other than a kernel was passed
MAX_FAULTS = 100
MAX_REGISTER = 65_535  # the IL's register numbers have 16 bits (IL specification 2.2.4)

ALIASES = {"vatid": "vAbsTidFlat", "vatid0": "vAbsTidFlat", "vtid": "vTidInGrpFlat", "vtgroupid": "vThreadGrpIdFlat"}
INPUTS = ("vWinCoord0", "vAbsTid", "vAbsTidFlat", "vTidInGrp", "vTidInGrpFlat", "vThreadGrpId", "vThreadGrpIdFlat")
INPUT_NAMES = {name.lower(): name for name in INPUTS} | ALIASES | {"vwincoord": "vWinCoord0"}
MODIFIERS = ("neg", "abs", "x2", "bias", "bx2", "invert", "sign")
RESULT_SCALE = {"x2": 2.0, "x4": 4.0, "x8": 8.0, "d2": 0.5, "d4": 0.25, "d8": 0.125}
COLOURS = str.maketrans("rgba", LETTERS)
PLAIN = {"resource", "sampler", "id", "k", "out", "in"}  # controls that take one whole number

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_BRACKETS = re.compile(r"\(([^()]*)\)")
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
_NUMBER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?[fF]?)")
_REGISTER = re.compile(r"(in|out|cb|[rlo])(\d+)(?![A-Za-z0-9])", re.IGNORECASE)
_COMMENT = re.compile(r";|//")


class _Fault(Exception):
    """A fault at a column of the line being read."""

    def __init__(self, column: int, message: str):
        super().__init__(message)
        self.column, self.message = column, message


class Line:
    """A cursor over one source line without its comment."""

    def __init__(self, text: str, number: int):
        comment = _COMMENT.search(text)
        self.text = text[: comment.start()].rstrip() if comment else text.rstrip()
        self.number = number
        self.at = 0
        self.skip()

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\r\f\v\ufeff":
            self.at += 1

    def take(self, pattern: re.Pattern) -> re.Match | None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def eat(self, character: str) -> bool:
        self.skip()
        found = self.text.startswith(character, self.at)
        self.at += len(character) if found else 0
        return found

    def expect(self, character: str, why: str) -> None:
        if not self.eat(character):
            self.fail(f"expected `{character}` {why}, found {self.rest()}")

    def rest(self) -> str:
        """What stands at the cursor, for a message."""
        self.skip()
        word = self.text[self.at : self.at + 24].split(" ")[0]
        return f"`{word}`" if word else "the end of the line"

    def fail(self, message: str, at: int | None = None):
        raise _Fault((self.at if at is None else at) + 1, message)

    def integer(self, what: str) -> int:
        self.skip()
        start = self.at
        match = self.take(_INTEGER)
        if not match:
            self.fail(f"expected {what} (a whole number), found {self.rest()}", start)
        return _whole(match.group(), self, start)


def _whole(text: str, line: Line, at: int) -> int:
    if len(text) > 10:
        line.fail(f"the number `{text[:16]}...` does not fit in 32 bits", at)
    value = int(text, 0) if text[:2].lower() == "0x" else int(text)
    if value > 0xFFFFFFFF:
        line.fail(f"the number `{text}` does not fit in 32 bits", at)
    return value


def assemble(text: str, name: str = "kernel.il") -> Program:
    """Read IL text into a ``Program``.

    Parameters: ``text``, the kernel; ``name``, what to call it in reports. Raises ``ILError`` with every fault of the
    text, each with its line, column and what was expected; ``TypeError`` if ``text`` isn't a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"assemble takes IL text as a str, not {type(text).__name__}; read a file with Path.read_text()")
    if len(text) > MAX_TEXT:
        raise ILError(name, [Fault(1, 1, f"{len(text):,} characters are no kernel: at most {MAX_TEXT:,} are read", "")])
    return _Assembler(text, name).program()


class _Assembler:
    def __init__(self, text: str, name: str):
        self.name = name
        self.lines = tuple(re.split(r"\r\n|\n|\r", text))
        self.faults: list[Fault] = []
        self.columns: dict[int, int] = {}  # line: column of its first word, for checks made afterwards

    def program(self) -> Program:
        mode, instructions, macros = "", [], []
        macro: Instruction | None = None
        body: list[Instruction] = []
        ended = False
        for number, raw in enumerate(self.lines, 1):
            if len(self.faults) >= MAX_FAULTS:
                break
            line = Line(raw, number)
            if not line.text[line.at :]:
                continue
            self.columns[number] = line.at + 1
            try:
                if not mode:
                    mode = _header(line)
                    continue
                if ended:
                    line.fail("nothing may follow `end`")
                instruction = _statement(line)
                if instruction is None:
                    continue
                if instruction.opcode == "mdef":
                    if macro:
                        line.fail("`mdef` inside a macro: close the first with `mend`")
                    macro, body = instruction, []
                elif instruction.opcode == "mend":
                    if not macro:
                        line.fail("`mend` without `mdef`")
                    macros.append(_macro(macro, body))
                    macro = None
                elif macro:
                    body.append(instruction)
                elif instruction.op.kind == "end":
                    ended = instruction.opcode == "end"
                else:
                    instructions.append(instruction)
            except _Fault as fault:
                self.faults.append(Fault(number, fault.column, fault.message, raw))
                mode = mode or "compute"  # go on, to report what else is wrong
        if not mode:
            self._fault(1, "an empty kernel: the first line must be `il_ps_2_0` (pixel) or `il_cs_2_0` (compute)")
        elif macro:
            self._fault(macro.line, "`mdef` without `mend`")
        elif not ended and not self.faults:
            self._fault(len(self.lines), "the kernel has no `end`")
        before = len(self.faults)
        for block in (instructions, *(m.body for m in macros)):
            self._check_blocks(block)
        program = Program(mode or "compute", tuple(instructions), tuple(macros), self.name, self.lines)
        if len(self.faults) == before and not self._lost_names():
            self._check_names(program)
        if self.faults:
            raise ILError(self.name, self.faults)
        return program

    def _fault(self, line: int, message: str, word: str = "") -> None:
        """A fault found after reading: at ``word`` in the line if it stands there, else at the line's first word."""
        if len(self.faults) < MAX_FAULTS:
            text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
            found = re.search(rf"\b{re.escape(word)}(?![0-9])", text, re.IGNORECASE) if word else None
            column = found.start() + 1 if found else self.columns.get(line, 1)
            self.faults.append(Fault(line, column, message, text))

    def _lost_names(self) -> bool:
        """Whether a faulty line may have held a declaration: what else is undeclared can't be told then."""
        starts = (fault.text.strip().lower() for fault in self.faults)
        return any(start.startswith(("d", "il", "mdef", "mend")) for start in starts)

    def _check_blocks(self, instructions) -> None:
        """Loops and ifs must nest; ``break`` and ``continue`` need a loop."""
        stack: list[Instruction] = []
        closes = {"endloop": ("loop", "`endloop` without `whileloop`"), "endif": ("if", "`endif` without an if")}
        for i in instructions:
            flow = i.op.flow
            if flow in ("loop", "if"):
                stack.append(i)
            elif flow in closes or flow == "else":
                wanted, message = closes.get(flow, ("if", "`else` without an if"))
                if not stack or stack[-1].op.flow not in (wanted, "else" if flow == "endif" else wanted):
                    inside = f" (inside `{stack[-1].opcode}` of line {stack[-1].line})" if stack else ""
                    self._fault(i.line, message + inside)
                    continue
                stack.pop()
                if flow == "else":
                    stack.append(i)
            elif flow in ("break", "continue") and not any(s.op.flow == "loop" for s in stack):
                self._fault(i.line, f"`{i.opcode}` outside a loop")
        for i in stack:
            self._fault(i.line, f"`{i.opcode}` is never closed by `{'endloop' if i.op.flow == 'loop' else 'endif'}`")

    def _check_names(self, program: Program) -> None:
        """Everything that is used must be declared and must exist in the kernel's mode."""
        try:
            body = program.body
        except ILError as error:  # macro calls that can't be expanded
            self.faults.extend(error.faults)
            return
        seen: set[tuple[int, str]] = set()
        for i in body:
            for word, message in _name_faults(i, program):
                if (i.line, message) not in seen:
                    seen.add((i.line, message))
                    self._fault(i.line, message, word)


def _name_faults(i: Instruction, program: Program):
    """Pairs of the word at fault and what is wrong with it."""
    registers = [d.register for d in (i.dest, *i.outputs) if d] + [s.register for s in i.sources]
    registers += [r.address.register for r in registers if r.address]
    for register in registers:
        kind, index = register.kind, register.index
        if kind == "l" and index not in program.literals:
            yield f"l{index}", f"l{index} is not declared: add `dcl_literal l{index}, ...`"
        elif kind == "cb" and register.element >= program.constants.get(index, 0):
            size = program.constants.get(index)
            has = f"cb{index} has {size} elements" if size else f"cb{index} is not declared"
            yield f"cb{index}", f"{register}: {has}; declare `dcl_cb cb{index}[{register.element + 1}]`"
        elif kind == "vWinCoord0" and program.mode == "compute":
            yield kind, f"{kind} exists in pixel kernels (`il_ps_2_0`); a compute kernel has vAbsTid, vTidInGrp and the like"
        elif kind in INPUTS[1:] and program.mode == "pixel":
            yield kind, f"{kind} exists in compute kernels (`il_cs_2_0`); a pixel kernel has vWinCoord0"
        elif kind == "o" and program.mode == "compute":
            yield str(register), "output streams exist in pixel kernels only; a compute kernel stores to g[]"
        elif kind in ("in", "out"):
            yield str(register), f"{register} exists inside a macro only"
    if i.op.kind == "fetch" and i.control("resource") not in program.textures:
        n = i.control("resource")
        declaration = f"dcl_resource_id({n})_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
        yield f"{i.opcode}_resource", f"resource {n} is not declared: add `{declaration}`"
    if i.op.kind == "lds":
        if program.mode == "pixel":
            yield i.opcode, f"`{i.opcode}`: a pixel kernel has no LDS; use `il_cs_2_0`"
        elif i.control("id") not in program.lds:
            yield i.opcode, f"LDS {i.control('id')} is not declared: add `dcl_lds_id({i.control('id')}) BYTES`"
    if i.opcode == "fence" and program.mode == "pixel" and (i.control("threads") or i.control("lds")):
        yield "fence", "a pixel kernel has no workgroup: only `fence_memory` is allowed in it"


def _header(line: Line) -> str:
    match = line.take(_WORD)
    word = match.group().lower() if match else ""
    if word == "il_ps_2_0":
        return "pixel"
    if word == "il_cs_2_0":
        return "compute"
    return line.fail(f"expected `il_ps_2_0` (pixel) or `il_cs_2_0` (compute) first, found `{word[:40]}`", 0)


def _macro(head: Instruction, body: list[Instruction]) -> Macro:
    return Macro(head.control("k"), head.control("out", 0), head.control("in", 0), tuple(body), line=head.line)


def _statement(line: Line) -> Instruction | None:
    """One statement, or None for a line that says nothing to the machine."""
    start = line.at
    segments = _head(line)
    word = segments[0][0]
    if word.startswith("il_"):
        line.fail(f"`{word}`: the kernel's header stands once, in the first line", start)
    for refused, why in REFUSED.items():
        if word.startswith(refused):
            line.fail(f"`{refused}` {why}", start)
    if word in ("mdef", "mend"):
        controls = tuple(sorted((k.strip("_") if k != "mdef" else "k", _count(v, line, start)) for k, v in segments if v))
        if word == "mdef" and "k" not in dict(controls):
            line.fail("a macro needs a number: `mdef(7)_out(1)_in(2)`", start)
        _end(line)
        return Instruction(word, controls=controls, line=line.number)
    op, rest = _opcode(word, line, start)
    if op.kind == "declaration":
        return _declaration(op, rest, segments, line, start)
    controls, shift, saturate = _controls(op, rest, segments, line, start)
    if op.name == "mcall":
        return _macro_call(controls, line)
    dest, sources = _operands(op, controls, line)
    _end(line)
    if (shift != 1.0 or saturate) and not ("f" in op.result or op.name == "mov"):
        line.fail(f"`{op.name}` gives no single-precision float: it can't be scaled or saturated", start)
    return Instruction(op.name, dest, sources, tuple(sorted(controls.items())), shift, saturate, line=line.number)


def _header(line: Line) -> str:
    match = line.take(_WORD)
    word = match.group().lower() if match else ""
    if word == "il_ps_2_0":
        return "pixel"
    if word == "il_cs_2_0":
        return "compute"
    return line.fail(f"expected `il_ps_2_0` (pixel) or `il_cs_2_0` (compute) first, found `{word[:40]}`", 0)


def _macro(head: Instruction, body: list[Instruction]) -> Macro:
    return Macro(head.control("k"), head.control("out", 0), head.control("in", 0), tuple(body), line=head.line)


def _statement(line: Line) -> Instruction | None:
    """One statement, or None for a line that says nothing to the machine."""
    start = line.at
    segments = _head(line)
    word = segments[0][0]
    if word.startswith("il_"):
        line.fail(f"`{word}`: the kernel's header stands once, in the first line", start)
    for refused, why in REFUSED.items():
        if word.startswith(refused):
            line.fail(f"`{refused}` {why}", start)
    if word in ("mdef", "mend"):
        controls = tuple(sorted((k.strip("_") if k != "mdef" else "k", _count(v, line, start)) for k, v in segments if v))
        if word == "mdef" and "k" not in dict(controls):
            line.fail("a macro needs a number: `mdef(7)_out(1)_in(2)`", start)
        _end(line)
        return Instruction(word, controls=controls, line=line.number)
    op, rest = _opcode(word, line, start)
    if op.kind == "declaration":
        return _declaration(op, rest, segments, line, start)
    controls, shift, saturate = _controls(op, rest, segments, line, start)
    if op.name == "mcall":
        return _macro_call(controls, line)
    dest, sources = _operands(op, controls, line)
    _end(line)
    if (shift != 1.0 or saturate) and not ("f" in op.result or op.name == "mov"):
        line.fail(f"`{op.name}` gives no single-precision float: it can't be scaled or saturated", start)
    return Instruction(op.name, dest, sources, tuple(sorted(controls.items())), shift, saturate, line=line.number)


class _Bare(Instruction):
    """``mdef`` and ``mend``: read like instructions, kept only as macros."""

    def __init__(self, opcode: str, controls, line: int):
        super().__init__(opcode, controls=controls, line=line)


def _head(line: Line) -> list[tuple[str, str]]:
    """The opcode and its bracketed controls: ``a_b(1)_c(2)`` gives [("a_b", "1"), ("_c", "2")]."""
    segments = []
    while True:
        match = line.take(_WORD)
        if not match:
            if not segments:
                line.fail(f"expected an instruction, found {line.rest()}")
            return segments
        word = match.group()
        brackets = line.take(_BRACKETS)
        segments.append((word.lower(), brackets.group(1).strip() if brackets else ""))
        if not brackets or not line.text.startswith("_", line.at):
            return segments


def _count(text: str, line: Line, at: int) -> int:
    if not _INTEGER.fullmatch(text):
        line.fail(f"expected a whole number in brackets, found `{text}`", at)
    return _whole(text, line, at)


def _opcode(word: str, line: Line, at: int) -> tuple[Opcode, str]:
    """The opcode whose name begins ``word``, longest first, and what follows it."""
    parts = word.split("_")
    for length in range(len(parts), 0, -1):
        name = "_".join(parts[:length])
        if name in OPCODES:
            return OPCODES[name], "_".join(parts[length:])
    known = [*OPCODES, "mdef", "mend"]
    guess = nearest(word, known) or nearest(parts[0], known)
    return line.fail(f"`{word}` is no instruction of this device.{guess}", at)


def _controls(op: Opcode, rest: str, segments, line: Line, at: int) -> tuple[dict, float, bool]:
    """Controls, result scale and saturation from what follows the opcode's name."""
    controls: dict[str, object] = {}
    shift, saturate = 1.0, False
    named = [(part, "") for part in rest.split("_") if part]
    if segments[0][1]:
        named[-1:] = [(named[-1][0] if named else "k", segments[0][1])]
    named += [(name.strip("_"), value) for name, value in segments[1:]]
    allowed = {
        "sample": ("resource", "sampler", "aoffimmi", "coordtype"),
        "load": ("resource", "aoffimmi"),
        "fence": ("threads", "lds", "memory"),
        "mcall": ("k",),
        "breakc": ("relop",),
        "ifc": ("relop",),
    }.get(op.name, ("id",) if op.kind == "lds" else ())
    for name, value in named:
        if name in allowed:
            if name in PLAIN:
                controls[name] = _count(value, line, at)
            elif name == "aoffimmi":
                parts = [p.strip() for p in value.split(",")]
                if len(parts) != 3 or not all(re.fullmatch(r"[-+]?\d{1,3}(\.0*)?", p) for p in parts):
                    line.fail(f"`aoffimmi` takes three whole numbers, as in `_aoffimmi(1,0,0)`, found `({value})`", at)
                controls[name] = tuple(int(float(p)) for p in parts)
            elif name == "relop":
                if value not in RELOPS:
                    line.fail(f"`relop` is one of {', '.join(RELOPS)}, found `{value}`.{nearest(value, RELOPS)}", at)
                controls[name] = value
            elif op.name == "fence":
                controls[name] = True
        elif name == "sat" and op.kind == "alu":
            saturate = True
        elif name in RESULT_SCALE and op.kind == "alu":
            shift *= RESULT_SCALE[name]
        elif name in ("ieee", "zeroop") and op.kind == "alu":
            pass  # every operation here is IEEE already
        else:
            guess = nearest(name, [*allowed, *RESULT_SCALE, "sat"])
            line.fail(f"`{op.name}` has no control `_{name}`.{guess}", at)
    needed = {"sample": ("resource",), "load": ("resource",), "breakc": ("relop",), "ifc": ("relop",), "mcall": ("k",)}
    for name in needed.get(op.name, ("id",) if op.kind == "lds" else ()):
        if name not in controls:
            line.fail(f"`{op.name}` needs `_{name}(...)`" if name != "k" else "`mcall` needs a number: `mcall(7)`", at)
    if op.name == "fence" and not controls:
        line.fail("`fence` needs a name for what it waits for: `fence_threads_lds`, `fence_lds` or `fence_memory`", at)
    if op.name == "sample":
        controls.setdefault("sampler", 0)
    return controls, shift, saturate


def _operands(op: Opcode, controls: dict, line: Line) -> tuple[Dest | None, tuple[Source, ...]]:
    shape = "dest, " * (op.result != "-") + ", ".join(f"source {n + 1}" for n in range(len(op.sources)))
    dest = None
    count = len(op.sources)
    if op.result != "-":
        dest = _dest(line, op)
        if count:
            line.expect(",", f"after the destination (`{op.name} {shape}`)")
    sources = []
    for n in range(count):
        if n:
            if op.name == "lds_load_vec" and not line.text[line.at :].strip():
                break  # raw LDS needs no offset
            line.expect(",", f"after source {n} (`{op.name} {shape}`)")
        line.skip()
        start = line.at
        sources.append(_source(line))
        _check_modifiers(op, n, sources[n], line, start)
    if op.name == "lds_load_vec" and len(sources) == 1:
        sources.append(Source(sources[0].register, "0000"))
    return dest, tuple(sources)


def _check_modifiers(op: Opcode, n: int, source: Source, line: Line, at: int) -> None:
    """Integers can be negated only, doubles negated and made absolute (IL specification, table 2.10)."""
    double = op.sources[n] == "d"
    if op.float_modifiers(n) or not source.modified:
        return
    for name in ("invert", "bias", "x2", "sign", "abs"):
        if getattr(source, name) and not (double and name == "abs"):
            kind = "a double" if double else "an integer"
            line.fail(f"`_{name}` can't be used here: source {n + 1} of `{op.name}` is {kind}", at)


def _end(line: Line) -> None:
    line.skip()
    if line.at < len(line.text):
        line.fail(f"expected the end of the line, found {line.rest()}")


def _register(line: Line) -> Register:
    line.skip()
    start = line.at
    match = line.take(_REGISTER)
    if match:
        kind, index = match.group(1).lower(), _whole(match.group(2), line, start)
        if index > MAX_REGISTER:
            line.fail(f"`{match.group()}`: register numbers end at {MAX_REGISTER}", start)
        if kind == "o" and index > 7:
            line.fail(f"`{match.group()}`: the output streams are o0 to o7", start)
        if kind == "cb":
            line.expect("[", "after a constant buffer's name, as in `cb0[3]`")
            element = line.integer("the number of an element")
            line.expect("]", "to close the element's number")
            return Register("cb", index, element)
        return Register(kind, index)
    word = line.take(_NAME)
    name = word.group().lower() if word else ""
    if name == "g":
        return _global(line)
    if name == "mem":
        return Register("mem")
    if name in INPUT_NAMES:
        return Register(INPUT_NAMES[name])
    found = f"`{word.group()[:32]}`" if word else line.rest()
    guess = nearest(name, [*INPUTS, "mem", "r0", "l0", "o0", "g"]) if word else ""
    return line.fail(f"expected a register (r0, l0, cb0[0], g[r0.x], o0, vWinCoord0, ...), found {found}.{guess}", start)


def _global(line: Line) -> Register:
    line.expect("[", "after `g`, as in `g[r1.x+1]`")
    line.skip()
    address, element = None, 0
    if line.at < len(line.text) and line.text[line.at].isdigit():
        element = line.integer("an element")
    else:
        start = line.at
        address = _source(line)
        if address.register.kind not in ("r", "in", *INPUTS) or address.modified or len(set(address.swizzle)) > 1:
            line.fail("an address is one component of a register, as in `g[r1.x+1]`", start)
        if line.eat("+"):
            element = line.integer("an offset in elements")
        elif line.eat("-"):
            element = -line.integer("an offset in elements")
    line.expect("]", "to close the address")
    return Register("g", 0, element, address)


def _dest(line: Line, op: Opcode) -> Dest:
    start = line.at
    register = _register(line)
    allowed = ("mem",) if op.name == "lds_store_vec" else ("r", "o", "g", "out")
    if register.kind not in allowed:
        wanted = "`mem` with a mask, as in `mem.xy__`" if allowed[0] == "mem" else "r, o or g"
        line.fail(f"`{register}` can't be written by `{op.name}`: the destination is {wanted}", start)
    mask = "xyzw"
    if line.eat("."):
        mask_at = line.at
        match = line.take(re.compile(r"[xyzwrgbaXYZWRGBA01_]+"))
        mask = _mask(match.group().lower().translate(COLOURS) if match else "", line, mask_at)
    if op.double and op.result == "d" and not any(mask[p : p + 2] == "xyzw"[p : p + 2] for p in (0, 2)):
        line.fail(f"`{op.name}` writes a double: its mask must hold xy or zw", start)
    return Dest(register, mask)


def _mask(text: str, line: Line, at: int) -> str:
    mask = ""
    for c in text:
        if c in LETTERS:
            if LETTERS.index(c) < len(mask):
                line.fail(f"mask `.{text}`: letters must stand in the order xyzw, each at most once", at)
            mask = mask.ljust(LETTERS.index(c), "_")
        mask += c
    if not 0 < len(mask) <= 4:
        line.fail("a mask has one to four of the letters x y z w 0 1 _", at)
    return mask.ljust(4, "_")


def _source(line: Line) -> Source:
    register = _register(line)
    if register.kind in ("o", "out", "mem"):
        line.fail(f"`{register}` can't be read", line.at - len(str(register)))
    swizzle = LETTERS
    if line.text.startswith(".", line.at):
        line.at += 1
        match = line.take(re.compile(r"[xyzwrgbaXYZWRGBA01]+(?![A-Za-z0-9])"))
        text = match.group().lower().translate(COLOURS) if match else ""
        if not 1 <= len(text) <= 4:
            line.fail(f"a swizzle has one to four of the letters x y z w 0 1, found {line.rest()}")
        swizzle = {1: text * 4, 2: text * 2, 3: text + text[-1:], 4: text}[len(text)]
    flags: dict[str, bool] = {}
    negate = ""
    while line.text.startswith("_", line.at):
        start = line.at
        line.at += 1
        match = line.take(re.compile(r"[A-Za-z0-9]+"))
        name = match.group().lower() if match else ""
        if name not in MODIFIERS:
            line.fail(f"`_{name}` is no modifier of a source.{nearest(name, MODIFIERS)}", start)
        if name == "neg":
            brackets = line.take(_BRACKETS)
            letters = brackets.group(1).replace(" ", "").lower().translate(COLOURS) if brackets else LETTERS
            if set(letters) - set(LETTERS):
                line.fail(f"`_neg` takes the letters of positions, as in `_neg(xw)`, found `({letters})`", start)
            negate = "".join(c for c in LETTERS if c in letters)
        elif name == "bx2":
            flags |= {"bias": True, "x2": True}
        else:
            flags[name] = True
    return Source(register, swizzle, negate, **flags)


def _macro_call(controls: dict, line: Line) -> Instruction:
    line.eat(",")
    outputs = _list(line, lambda: _dest(line, OPCODES["mov"]), "outputs")
    line.expect(",", "between the outputs and the inputs")
    inputs = _list(line, lambda: _source(line), "inputs")
    _end(line)
    return Instruction("mcall", None, tuple(inputs), tuple(controls.items()), outputs=tuple(outputs), line=line.number)


def _list(line: Line, one, what: str) -> list:
    line.expect("(", f"before the list of {what}, as in `mcall(7) (r1), (r2, r3)`")
    found = []
    while not line.eat(")"):
        if found:
            line.expect(",", f"or `)` in the list of {what}")
        found.append(one())
    return found


def _declaration(op: Opcode, rest: str, segments, line: Line, at: int) -> Instruction | None:
    named = [(rest, segments[0][1])] + [(name.strip("_"), value) for name, value in segments[1:]]
    control = {name: value for name, value in named if name}
    dest, numbers, controls = None, (), {}
    if op.name == "dcl_literal":
        dest = Dest(_register(line))
        if dest.register.kind != "l":
            line.fail("`dcl_literal` declares an l register, as in `dcl_literal l0, 0, 1.0, 0x3f000000, 2`", at)
        numbers = _literal_numbers(line)
    elif op.name == "dcl_resource":
        controls = _resource(control, line, at)
    elif op.name == "dcl_cb":
        match = line.take(re.compile(r"\s*cb(\d+)\s*\[\s*(\d+)\s*\]", re.IGNORECASE))
        if not match:
            line.fail("expected a constant buffer and its size, as in `dcl_cb cb0[4]`")
        numbers = (int(match.group(1)[:9]), int(match.group(2)[:9]))
        if numbers[1] > 4096 or numbers[0] > 15:
            line.fail("the constant buffers are cb0 to cb15, with at most 4096 elements each", at)
    elif op.name == "dcl_input_position_interp":
        controls = {"interp": segments[0][1]}
        dest = _dest_of_input(line)
    elif op.name in ("dcl_output_generic", "dcl_output_usage"):
        dest = Dest(_register(line))
        if dest.register.kind != "o":
            line.fail("an output stream is one of o0 to o7", at)
        _mask_of(line)
        op = OPCODES["dcl_output_generic"]
    else:
        if op.name in ("dcl_lds", "dcl_struct_lds"):
            controls = {"id": _count(control.get("id", ""), line, at)}
        found = [line.integer("a size")]
        while line.eat(","):
            found.append(line.integer("a size"))
        numbers = tuple(found)
        _check_sizes(op, numbers, line, at)
    _end(line)
    return Instruction(op.name, dest, (), tuple(sorted(controls.items())), numbers=numbers, line=line.number)


def _dest_of_input(line: Line) -> Dest:
    register = _register(line)
    if register.kind != "vWinCoord0":
        line.fail("the one input of a pixel kernel is vWinCoord0")
    return Dest(register, _mask_of(line))


def _mask_of(line: Line) -> str:
    if not line.eat("."):
        return LETTERS
    at = line.at
    match = line.take(re.compile(r"[xyzwXYZW01_]+"))
    return _mask(match.group().lower() if match else "", line, at)


def _check_sizes(op: Opcode, numbers: tuple[int, ...], line: Line, at: int) -> None:
    if op.name == "dcl_num_thread_per_group":
        total = 1
        for n in numbers:
            total *= n
        if len(numbers) > 3 or not 0 < total <= 1024:
            line.fail(f"a workgroup has 1 to 1024 work-items in up to three dimensions, found {numbers}", at)
        return
    if len(numbers) != (1 if op.name == "dcl_lds" else 2):
        line.fail("expected `dcl_lds_id(0) BYTES` or `dcl_struct_lds_id(0) STRIDE, COUNT`", at)
    if op.name == "dcl_struct_lds" and (numbers[0] % 4 or not numbers[0]):
        line.fail(f"the stride of an LDS record is a multiple of 4 bytes, found {numbers[0]}", at)
    size = numbers[0] * (numbers[1] if len(numbers) > 1 else 1)
    if size > 32768:
        line.fail(f"{size} bytes of LDS asked for: a workgroup has 32768 at most", at)


def _resource(control: dict, line: Line, at: int) -> dict:
    kinds = [part.strip().lower() for part in control.get("type", "").split(",")]
    if kinds[0] not in ("1d", "2d") or kinds[1:] not in ([], ["unnorm"]):
        line.fail(f"expected `_type(2d,unnorm)`, `_type(2d)` or the same with 1d, found `({control.get('type', '')})`", at)
    formats = {control.get(f"fmt{axis}", "unknown").lower() for axis in LETTERS}
    unknown = set(control) - {"id", "type", *(f"fmt{axis}" for axis in LETTERS)}
    if unknown:
        line.fail(f"`dcl_resource` has no control `_{min(unknown)}`", at)
    for kind in formats - {"float", "unknown", "sint", "uint", "unorm", "snorm"}:
        line.fail(f"a format is float, unknown, sint or uint, found `{kind}`.{nearest(kind, ['float', 'unknown'])}", at)
    kind = formats.pop() if len(formats) == 1 else "unknown"
    return {"id": _count(control.get("id", ""), line, at), "type": kinds[0], "unnorm": "unnorm" in kinds, "format": kind}


def _literal_numbers(line: Line) -> tuple[int, ...]:
    numbers = []
    for n in range(4):
        line.expect(",", "before each of the four numbers of a literal")
        line.skip()
        start = line.at
        match = line.take(_NUMBER)
        if not match:
            line.fail(f"number {n + 1} of a literal: expected hexadecimal, float or integer text, found {line.rest()}")
        numbers.append(_bits(match.group(), line, start))
    return tuple(numbers)


def _bits(text: str, line: Line, at: int) -> int:
    """The 32-bit pattern of a number: text with a point or an exponent is a float, other text an integer."""
    bare = text.lstrip("+-")
    if bare[:2].lower() == "0x" or bare.isdigit():
        value = _whole(bare, line, at)
        return -value & 0xFFFFFFFF if text.startswith("-") else value
    try:
        return struct.unpack("<I", struct.pack("<f", float(text.rstrip("fF"))))[0]
    except OverflowError:
        return line.fail(f"`{text[:32]}` does not fit in a single-precision float", at)
