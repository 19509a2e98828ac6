"""From schedule and registers to code: the last pass.

Operands become registers, PV and PS, literals or constants; control flow becomes the hardware's: an ``if`` pushes the
execution mask before the clause that tests (ALU_PUSH_BEFORE), JUMP skips a part nobody runs, ELSE inverts, POP
restores. A test whose only work is to leave a loop needs none of that if its opposite can be tested: ALU_BREAK.
"""

from dataclasses import replace

from cypresskit.compiler.allocate import Allocation
from cypresskit.compiler.assembly import Bundle, Control, FetchInstruction, Operation, Read, StoreInstruction
from cypresskit.compiler.ir import BasicBlock, FetchDetail, Function, LdsAccess, LdsPop, Op, StoreDetail, Word
from cypresskit.compiler.isa import INLINE, SIGN, T, opposite
from cypresskit.compiler.packing import Draft, Placed, Plans, needs_literal
from cypresskit.compiler.ports import SCALAR_NAMES, VECTOR_NAMES


def emit(function: Function, plans: Plans, allocation: Allocation) -> tuple[Control, ...]:
    """The hardware's instructions."""
    return tuple(_Emitter(function, plans, allocation).run())


class _Emitter:
    """``opened``: controls whose target is not known yet: JUMP, ELSE, LOOP_START."""

    def __init__(self, function: Function, plans: Plans, allocation: Allocation):
        self.items, self.plans, self.allocation, self.program = function.items, plans, allocation, function.program
        self.controls: list[Control] = []
        self.opened: list[int] = []
        self.depth = 0

    def run(self) -> list[Control]:
        skip = 0
        for n, item in enumerate(self.items):
            if n < skip:
                continue
            if isinstance(item, BasicBlock):
                self.block(item)
            elif item == "if":
                skip = n + 1 + self.test(n)
            else:
                self.keyword(n, item)
        self.add("END")
        return self.controls

    def keyword(self, n: int, keyword: str) -> None:
        """Control flow that tests nothing: item ``n``."""
        if keyword == "loop":
            self.depth += 1
            self.opened.append(self.add("LOOP_START_DX10"))
        elif keyword == "endloop":
            start = self.opened.pop()
            self.aim(start, self.add("LOOP_END", target=start + 1) + 1)
            self.depth -= 1
        elif keyword in ("break", "continue"):
            self.add(f"LOOP_{keyword.upper()}")
        elif keyword == "endif":
            self.aim(self.opened.pop(), self.add("POP"))
        elif not self.empty(n + 1) or self.items[n + 2] != "endif":
            here = self.add("ELSE")
            self.aim(self.opened.pop(), here)
            self.opened.append(here)

    def empty(self, n: int) -> bool:
        """Whether item ``n`` is a block with nothing to do."""
        item = self.items[n]
        return isinstance(item, BasicBlock) and not self.plans[item]

    def add(self, name: str, at: int | None = None, **what) -> int:
        if at is None:
            at = self.controls[-1].at if self.controls else 0
        line = self.program.body[at].line if self.program.body else 0
        self.controls.append(Control(name, depth=self.depth, at=at, line=line, **what))
        return len(self.controls) - 1

    def aim(self, index: int, target: int) -> None:
        self.controls[index] = replace(self.controls[index], target=target)

    def test(self, n: int) -> int:
        """An if: push the mask before the clause that tests, or leave the loop if that is all it does. Returns how many
        more items were dealt with."""
        last = self.controls[-1]
        words = [item if isinstance(item, str) else "" for item in self.items[n + 1 : n + 7]]
        leave, *rest = words[1:] or [""]
        if leave in ("break", "continue") and rest == ["", "else", "", "endif"]:
            blocks = (n + 1, n + 3, n + 5)
            inverted = _inverted(last) if all(map(self.empty, blocks)) else None
            if inverted is not None:
                self.controls[-1] = replace(last, name=f"ALU_{leave.upper()}", bundles=inverted)
                return 6
        self.controls[-1] = replace(last, name="ALU_PUSH_BEFORE")
        self.opened.append(self.add("JUMP"))
        return 0

    def block(self, block: BasicBlock) -> None:
        for plan in self.plans[block]:
            if plan.kind == "ALU":
                bundles = tuple(self.bundle(d) for d in plan.bundles)
                self.add("ALU", bundles[0].operations[0].at, bundles=bundles)
            elif plan.kind == "TEX":
                self.add("TEX", plan.ops[0].at, fetches=tuple(map(self.fetch, plan.ops)))
            else:
                store = self.store(plan.ops[0])
                name = "MEM_EXPORT_WRITE" if store.index is None else "MEM_EXPORT_WRITE_IND"
                self.add("EXPORT" if store.name == "EXPORT" else name, store.at, store=store)

    def line(self, op: Op) -> int:
        return self.program.body[op.at].line

    # Bundles

    def bundle(self, draft: Draft) -> Bundle:
        numbers: dict[Op, int] = {}
        literals: list[int] = []
        operations = []
        for slot in sorted(draft.slots):
            placed = draft.slots[slot]
            number = numbers.setdefault(placed.op, len(numbers))
            operations.append(self.operation(draft, placed, number, literals))
        return Bundle(tuple(operations), tuple(literals))

    def operation(self, draft: Draft, placed: Placed, number: int, literals: list[int]) -> Operation:
        op, slot, result = placed.op, placed.slot, placed.result
        swizzle = ""
        if placed.unit >= 0:
            swizzle = (SCALAR_NAMES if slot == T else VECTOR_NAMES)[draft.ports.swizzles[placed.unit]]
        name, reads = op.name, tuple(self.read(draft, op, k, literals) for k in placed.operands)
        if isinstance(op.detail, LdsPop):
            name, reads = "MOV", (Read("queue", index=placed.place),)
        channel = slot if slot != T else (placed.channel or 0)
        dest = None
        if result is not None and result in self.allocation.written:
            channel = result.vreg.channel or 0
            dest = (self.allocation.numbers[result.vreg], channel)
        lds = op.detail if isinstance(op.detail, LdsAccess) else None
        return Operation(
            name, slot, channel, reads, dest, swizzle, op.at, self.line(op), number, placed.place, op.omod, op.clamp,
            lds,
        )  # fmt: skip

    def read(self, draft: Draft, op: Op, k: int, literals: list[int]) -> Read:
        word, neg, absolute = op.srcs[k]
        if word.kind == "const":
            bits = word.bits
            if needs_literal(op, k, op.srcs[k]):
                if bits not in literals:
                    literals.append(bits)
                return Read("literal", channel=literals.index(bits), bits=bits)
            if bits in INLINE:
                return Read("inline", bits=bits)
            return Read("inline", bits=bits ^ SIGN, neg=True)
        if word.kind == "constant":
            buffer, element, channel = word.place
            return Read("constant", buffer, channel, element, neg=neg, abs=absolute)
        if word in draft.forwards:
            kind, channel = draft.forwards[word]
            return Read(kind, channel=channel, neg=neg, abs=absolute)
        return Read("gpr", self.allocation.numbers[word.vreg], word.vreg.channel or 0, neg=neg, abs=absolute)

    # Fetches and stores

    def fetch(self, op: Op) -> FetchInstruction:
        detail, numbers = op.detail, self.allocation.numbers
        assert isinstance(detail, FetchDetail)
        select, letters, dest, source = ["_"] * 4, "", 0, None
        for c, word in enumerate(op.results):
            if word in self.allocation.written:
                select[word.vreg.channel or 0] = "xyzw"[c]
                dest = numbers[word.vreg]
        for s in op.srcs:
            letters += _selected(s.value)
            source = numbers[s.value.vreg] if s.value.located else source
        what = letters, detail.offset, op.at, self.line(op), detail.resource, detail.unnormalised
        return FetchInstruction(op.name, dest, "".join(select), source, *what)

    def store(self, op: Op) -> StoreInstruction:
        detail, numbers = op.detail, self.allocation.numbers
        assert isinstance(detail, StoreDetail)
        select, source, index = ["_"] * 4, 0, None
        for component, s in zip(detail.mask, op.srcs):
            select[component] = _selected(s.value)
            source = numbers[s.value.vreg] if s.value.located else source
        if len(op.srcs) > len(detail.mask):
            index = numbers[op.srcs[-1].value.vreg]
        return StoreInstruction(op.name, source, "".join(select), detail.place, index, op.at, self.line(op))


def _selected(word: Word) -> str:
    """How a fetch or store names a word: its channel, or the constant 0 or 1."""
    if word.located:
        return "xyzw"[word.vreg.channel or 0]
    return "1" if word.bits else "0"


def _inverted(control: Control) -> tuple[Bundle, ...] | None:
    """An ALU clause with its test turned into the opposite, if the chip has that."""
    bundles, found = [], False
    for bundle in control.bundles:
        operations = []
        for o in bundle.operations:
            if o.row.predicate:
                other = opposite(o.row)
                if other is None or (other[1] and o.slot == T):
                    return None
                row, swapped = other
                if swapped:
                    o = replace(o, reads=o.reads[::-1], swizzle=_swapped(o.swizzle))
                o = replace(o, name=row.name)
                found = True
            operations.append(o)
        bundles.append(replace(bundle, operations=tuple(operations)))
    return tuple(bundles) if found else None


def _swapped(swizzle: str) -> str:
    """The vector swizzle that reads two exchanged operands in the same cycles."""
    return f"VEC_{swizzle[5]}{swizzle[4]}{swizzle[6]}"
