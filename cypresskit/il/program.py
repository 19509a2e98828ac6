"""Represent a kernel as data.

The assembler makes a ``Program`` of IL text; every other part of the package reads it. A program is
a tuple of ``Instruction``. Each has an opcode, at most one ``Dest`` and some ``Source`` operands;
an operand is a ``Register`` with the letters that select components. Line numbers are kept for
reports and ignored by comparisons, so a program that is printed and assembled again equals the
first.

``Program.instructions`` holds what the text says. In ``Program.body``, calls of macros are
expanded (``macros``), and declarations are removed. The body is what is compiled and run.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from cypresskit.il.opcodes import OPCODES, Opcode
from cypresskit.tables import folded

LETTERS = "xyzw"


@dataclass(frozen=True)
class Register:
    """A register's name.

    ``r12`` is ("r", 12), ``cb0[3]`` is ("cb", 0, 3) and ``vWinCoord0`` is ("vWinCoord0", 0). A
    global element ``g[r1.x+2]`` is ("g", 0, 2) with ``address`` the source ``r1.xxxx``; ``g[5]``
    has no address.
    """

    kind: str
    index: int = 0
    element: int = 0
    address: "Source | None" = None

    def __str__(self) -> str:
        if self.kind == "cb":
            return f"cb{self.index}[{self.element}]"
        if self.kind == "g":
            address = self.address or ""
            offset = f"{self.element:+d}" if self.element else ""
            return f"g[{address}{offset if address else self.element}]"
        return (
            f"{self.kind}{self.index}" if self.kind in ("r", "l", "o", "in", "out") else self.kind
        )


@dataclass(frozen=True)
class Source:
    """An operand that is read.

    Attributes
    ----------
    register
        The register.
    swizzle
        Four letters of ``xyzw01``: the component that each position reads, or a constant.
    negated
        Whether it is negated.
    """

    register: Register
    swizzle: str = LETTERS
    negated: bool = False

    def __str__(self) -> str:
        swizzle = self.swizzle[0] if len(set(self.swizzle)) == 1 else self.swizzle
        text = str(self.register) + ("" if swizzle == LETTERS else f".{swizzle}")
        return text + "_neg(xyzw)" * self.negated


@dataclass(frozen=True)
class Dest:
    """An operand that is written.

    Attributes
    ----------
    register
        The register.
    mask
        Four characters, one per component: its own letter (written), or ``_`` (kept).
    """

    register: Register
    mask: str = LETTERS

    @cached_property
    def written(self) -> tuple[int, ...]:
        """The components that are written, as numbers 0 to 3."""
        return tuple(c for c in range(4) if self.mask[c] != "_")

    def __str__(self) -> str:
        return str(self.register) + ("" if self.mask == LETTERS else f".{self.mask}")


class Controls(NamedTuple):
    """The controls of an instruction: words in brackets or after its opcode.

    Attributes
    ----------
    resource, sampler, aoffimmi
        Of a fetch: texture number, sampler number, and offset in texels along x, y, z.
    relop
        The relation of a branch; "" without.
    id
        Number of an LDS array or of a declared resource.
    threads, lds, memory
        What a fence waits for.
    k
        Number of a macro.
    """

    resource: int = 0
    sampler: int = 0
    aoffimmi: tuple[int, ...] = (0, 0, 0)
    relop: str = ""
    id: int = 0
    threads: bool = False
    lds: bool = False
    memory: bool = False
    k: int = 0


NO_CONTROLS = Controls()


@dataclass(frozen=True)
class Instruction:
    """One IL instruction.

    Attributes
    ----------
    opcode
        A name of ``OPCODES``.
    dest, sources
        Its operands.
    controls
        Its controls.
    numbers
        Of declarations: 32-bit patterns of a literal, sizes.
    outputs
        The destinations of a macro call.
    line
        Its source line; of an expanded instruction, the line in the macro.
    call
        The line of the macro call that led to it; 0 without.
    """

    opcode: str
    dest: Dest | None = None
    sources: tuple[Source, ...] = ()
    controls: Controls = NO_CONTROLS
    numbers: tuple[int, ...] = ()
    outputs: tuple[Dest, ...] = ()
    line: int = field(default=0, compare=False, repr=False)
    call: int = field(default=0, compare=False, repr=False)

    @cached_property
    def op(self) -> Opcode:
        """Its row of ``OPCODES``."""
        return OPCODES[self.opcode]

    @property
    def written_line(self) -> int:
        """The line of the source that it comes from; in a macro, the line of the call."""
        return self.call or self.line

    @property
    def registers(self) -> list[Register]:
        """The registers that it names, with the registers of addresses last."""
        named = [d.register for d in (self.dest, *self.outputs) if d] + [
            s.register for s in self.sources
        ]
        return named + [r.address.register for r in named if r.address]

    def renamed(self, new: Callable[[Register], Register]) -> "Instruction":
        """Return the instruction with each register replaced by ``new(register)``, addresses
        included.
        """

        def anew(operand: Any) -> Any:  # a source or a destination
            register = operand.register
            address = operand.register.address
            if address is not None:
                register = replace(
                    register, address=replace(address, register=new(address.register))
                )
            return replace(operand, register=new(register))

        dest = self.dest and anew(self.dest)
        outputs = tuple(map(anew, self.outputs))
        return replace(self, dest=dest, outputs=outputs, sources=tuple(map(anew, self.sources)))

    @property
    def relation(self) -> str:
        """The relation that a comparison or branch tests, a name of ``RELATIONS``. A branch without
        ``relop`` tests against 0.
        """
        return self.controls.relop or self.op.relation


@dataclass(frozen=True)
class Macro:
    """A macro, ``mdef(number)_out(outputs)_in(inputs)``.

    Attributes
    ----------
    number
        Its number.
    outputs, inputs
        Counts of its arguments.
    body
        Its instructions.
    line
        The line of its definition.
    """

    number: int
    outputs: int
    inputs: int
    body: tuple[Instruction, ...]
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"macro {self.number}"


@dataclass(frozen=True)
class Program:
    """An assembled kernel.

    Attributes
    ----------
    mode
        "pixel" (``il_ps_2_0``) or "compute" (``il_cs_2_0``).
    instructions, macros
        What the text says.
    name, lines
        The kernel's name and source lines, for reports.
    expanded
        ``instructions`` with calls expanded.
    written
        Registers that the expansion made up ("r45"), each with what the text says ("in0").
    """

    mode: str
    instructions: tuple[Instruction, ...]
    macros: tuple[Macro, ...] = ()
    name: str = field(default="kernel.il", compare=False)
    lines: tuple[str, ...] = field(default=(), compare=False, repr=False)
    expanded: tuple[Instruction, ...] = field(default=(), compare=False, repr=False)
    written: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<Program {self.name}: {self.mode} mode, {len(self.instructions)} instructions>"

    def _repr_html_(self) -> str:
        return folded(repr(self), str(self))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:  # cached: engines and compiler look results up by program
        return hash((self.mode, self.instructions, self.macros))

    @property
    def meaning(self) -> tuple[str, tuple[Instruction, ...], tuple[int, ...]]:
        """All that a result depends on: its mode, its instructions, and of each the first one that
        the same line of the source has led to. Comments, blanks, empty lines and the spelling of an
        operand aren't part of it.
        """
        firsts: dict[int, int] = {}
        of_line = tuple(firsts.setdefault(i.written_line, at) for at, i in enumerate(self.expanded))
        return self.mode, self.expanded, of_line

    def text_of(self, line: int) -> str:
        """Return a source line; "" for a line that the text doesn't have."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def where(self, line: int) -> str:
        """Return ``name:line: text`` of a source line, for a report."""
        return f"{self.name}:{line}: {self.text_of(line).strip()}"

    def called(self, i: Instruction) -> str:
        """Return a line of text about the macro call that led to an instruction; "" without."""
        return f"\n    called in {self.where(i.call)}" if i.call else ""

    def as_written(self, text: str) -> str:
        """Return ``text`` with made-up registers replaced by their names in the macro."""
        written = self.written
        return (
            re.sub(r"\b[rl][0-9]+\b", lambda m: written.get(m[0], m[0]), text) if written else text
        )

    @cached_property
    def declarations(self) -> tuple[Instruction, ...]:
        """All declarations, also of expanded macros."""
        return tuple(i for i in self.expanded if i.op.kind == "declaration")

    @cached_property
    def body(self) -> tuple[Instruction, ...]:
        """The instructions that run: calls expanded, declarations and ``end`` removed."""
        return tuple(i for i in self.expanded if i.op.kind not in ("declaration", "end"))

    @cached_property
    def matching(self) -> dict[int, int]:
        """Pairs of control flow in ``body``, by index.

        An opener leads to its end, an end to its opener, ``else`` to ``endif``, an if with an else
        to the else, ``break`` to the opener of its loop.
        """
        pairs: dict[int, int] = {}
        stack: list[int] = []
        for at, i in enumerate(self.body):
            if i.op.flow == "break":
                pairs[at] = next(
                    opener for opener in reversed(stack) if self.body[opener].op.flow == "loop"
                )
            if i.op.flow in ("else", "endloop", "endif"):
                opener = stack.pop()
                pairs[opener] = at
                if i.op.flow != "else":
                    pairs[at] = opener
            if i.op.flow in ("loop", "if", "else"):
                stack.append(at)
        return pairs

    @cached_property
    def literals(self) -> dict[int, tuple[int, int, int, int]]:
        """``l`` registers: number to four 32-bit patterns."""
        return {
            i.dest.register.index: i.numbers  # type: ignore
            for i in self.declarations
            if i.opcode == "dcl_literal"
        }

    @cached_property
    def textures(self) -> frozenset[int]:
        """The numbers of declared textures."""
        return frozenset(i.controls.id for i in self.declarations if i.opcode == "dcl_resource")

    @cached_property
    def constants(self) -> dict[int, int]:
        """Declared constant buffers: number to the count of four-component elements."""
        return {i.numbers[0]: i.numbers[1] for i in self.declarations if i.opcode == "dcl_cb"}

    @cached_property
    def needs(self) -> tuple[tuple[str, int, int], ...]:
        """The arrays that a launch must provide: kind ("cb", "o", "resource" or "g"), number, and
        the first line that uses it.
        """
        lines: dict[tuple[str, int], int] = {}
        for i in self.body:
            fetched = [("resource", i.controls.resource)] if i.op.kind == "fetch" else []
            for kind, number in [
                (o.register.kind, o.register.index) for o in (*i.sources, i.dest) if o
            ] + fetched:
                if kind in ("cb", "o", "g", "resource"):
                    lines.setdefault((kind, number), i.line)
        return tuple((*key, line) for key, line in lines.items())

    @cached_property
    def group(self) -> int:
        """Work-items of a workgroup (compute mode); by default 64."""
        names = ("dcl_max_thread_per_group", "dcl_num_thread_per_group")
        sizes = [i.numbers for name in names for i in self.declarations if i.opcode == name]
        return sizes[-1][0] if sizes else 64

    @cached_property
    def lds(self) -> dict[int, int]:
        """Size of each LDS array in bytes, by number."""
        return {i.controls.id: i.numbers[0] for i in self.declarations if i.opcode == "dcl_lds"}

    @cached_property
    def lds_bytes(self) -> int:
        """Bytes of LDS per workgroup."""
        return sum(self.lds.values())

    @cached_property
    def registers(self) -> tuple[int, ...]:
        """The numbers of all ``r`` registers that ``body`` names, in ascending order."""
        return tuple(sorted({r.index for i in self.body for r in i.registers if r.kind == "r"}))
