"""From schedule and registers to code: the last pass.

Operands become registers, PV and PS, literals or constants; control flow becomes the hardware's: an ``if`` pushes the
execution mask before the clause that tests (ALU_PUSH_BEFORE), JUMP skips a part nobody runs, ELSE inverts, POP
restores. A test whose only work is to leave a loop needs none of that if its opposite can be tested: ALU_BREAK.
"""

from dataclasses import replace

from cypresskit.compiler.allocate import Allocation
from cypresskit.compiler.bundles import SIGN, Draft, Placed, Step, literal
from cypresskit.compiler.code import Bundle, Clause, Code, Control, Fetch, Operation, Read, Store
from cypresskit.compiler.ir import Block, Function, Op
from cypresskit.compiler.isa import INLINE, T
from cypresskit.compiler.ports import SCALAR_NAMES, VECTOR_NAMES
from cypresskit.devices import Device

OPPOSITE = {
    "PRED_SETE": ("PRED_SETNE", False),
    "PRED_SETNE": ("PRED_SETE", False),
    "PRED_SETE_INT": ("PRED_SETNE_INT", False),
    "PRED_SETNE_INT": ("PRED_SETE_INT", False),
    "PRED_SETGT_INT": ("PRED_SETGE_INT", True),
    "PRED_SETGE_INT": ("PRED_SETGT_INT", True),
    "PRED_SETGT_UINT": ("PRED_SETGE_UINT", True),
    "PRED_SETGE_UINT": ("PRED_SETGT_UINT", True),
}


def emit(
    function: Function, steps: dict[Block, list[Step]], allocation: Allocation, device: Device, bounds: dict
) -> Code:
    """The finished code."""
    return replace(_Emitter(function, steps, allocation, device).run(), bounds=bounds)


class _Emitter:
    def __init__(self, function: Function, steps: dict[Block, list[Step]], allocation: Allocation, device: Device):
        self.function, self.steps, self.allocation, self.device = function, steps, allocation, device
        self.program = function.program
        self.controls: list[Control] = []

    def run(self) -> Code:
        items = self.function.items
        self.depth = 0
        opened: list[int] = []  # controls whose target is not known yet: JUMP, ELSE, LOOP_START
        n = 0
        while n < len(items):
            item = items[n]
            if isinstance(item, Block):
                self.block(item)
            elif item == "loop":
                self.depth += 1
                opened.append(self.add("LOOP_START_DX10"))
            elif item == "endloop":
                start = opened.pop()
                self.aim(start, self.add("LOOP_END", target=start + 1) + 1)
                self.depth -= 1
            elif item in ("break", "continue"):
                self.add("LOOP_BREAK" if item == "break" else "LOOP_CONTINUE")
            elif item == "if":
                n = self.test(n, opened)
            elif item == "else":
                following = items[n + 1]
                assert isinstance(following, Block)
                if self.steps[following] or items[n + 2] != "endif":
                    here = self.add("ELSE")
                    self.aim(opened.pop(), here)
                    opened.append(here)
            else:
                self.aim(opened.pop(), self.add("POP"))
            n += 1
        self.add("END")
        return Code(
            self.program,
            self.device,
            tuple(self.controls),
            self.allocation.registers,
            self.allocation.temporaries,
        )

    def add(self, name: str, **what) -> int:
        at = what.pop("at", self.controls[-1].at if self.controls else 0)
        line = self.program.body[at].line if self.program.body else 0
        self.controls.append(Control(name, depth=self.depth, at=at, line=line, **what))
        return len(self.controls) - 1

    def aim(self, index: int, target: int) -> None:
        self.controls[index] = replace(self.controls[index], target=target)

    def test(self, n: int, opened: list[int]) -> int:
        """An if: push the mask before the clause that tests. Returns the last item that was dealt with."""
        items, last = self.function.items, self.controls[-1]
        then, leave = items[n + 1], items[n + 2]
        if leave in ("break", "continue") and isinstance(then, Block) and not self.steps[then]:
            rest = items[n + 3 : n + 7]
            simple = len(rest) > 3 and rest[1] == "else" and rest[3] == "endif"
            if simple and not any(self.steps[b] for b in rest if isinstance(b, Block)):
                inverted = _inverted(last)
                if inverted is not None:
                    name = "ALU_BREAK" if leave == "break" else "ALU_CONTINUE"
                    self.controls[-1] = replace(last, name=name, clause=inverted)
                    return n + 6
        self.controls[-1] = replace(last, name="ALU_PUSH_BEFORE")
        opened.append(self.add("JUMP"))
        return n

    def block(self, block: Block) -> None:
        for step in self.steps[block]:
            if step.kind == "ALU":
                bundles = tuple(self.bundle(d) for d in step.bundles)
                self.add("ALU", clause=Clause("ALU", bundles), at=bundles[0].operations[0].at)
            elif step.kind == "TEX":
                fetches = tuple(self.fetch(op) for op in step.ops)
                self.add("TEX", clause=Clause("TEX", fetches=fetches), at=fetches[0].at)
            else:
                store = self.store(step.ops[0])
                name = "MEM_EXPORT_WRITE_IND" if store.index is not None else "MEM_EXPORT_WRITE"
                self.add("EXPORT" if store.name == "EXPORT" else name, store=store, at=store.at)

    def line(self, op: Op) -> int:
        return self.program.body[op.at].line

    # Bundles

    def bundle(self, draft: Draft) -> Bundle:
        numbers: dict[Op, int] = {}
        operations = []
        literals: list[int] = []
        for slot in sorted(draft.slots):
            placed = draft.slots[slot]
            number = numbers.setdefault(placed.op, len(numbers))
            operations.append(self.operation(draft, placed, number, literals))
        return Bundle(tuple(operations), tuple(literals))

    def operation(self, draft: Draft, placed: Placed, number: int, literals: list[int]) -> Operation:
        op, slot = placed.op, placed.slot
        swizzle = ""
        if placed.unit >= 0:
            swizzle = (SCALAR_NAMES if slot == T else VECTOR_NAMES)[draft.ports.swizzles[placed.unit]]
        if op.name == "LDS_POP":
            reads: tuple[Read, ...] = (Read("queue", index=placed.place),)
            name, result = "MOV", placed.result
        else:
            reads = tuple(self.read(draft, op, k, literals) for k in placed.operands)
            name, result = op.name, placed.result
        channel = slot if slot != T else (placed.channel if placed.channel is not None else 0)
        dest = None
        if result is not None and result in self.allocation.written:
            dest = (result.web.number, result.web.channel)
            channel = result.web.channel
        info = op.info
        lds = (info["block"], info["base"], info["size"]) if "block" in info else (0, 0, 0)
        return Operation(
            name, slot, channel, reads, dest, swizzle, op.at, self.line(op), number, placed.place, op.omod, op.clamp,
            info.get("offset", 0) if "block" in info else 0, lds,
        )  # fmt: skip

    def read(self, draft: Draft, op: Op, k: int, literals: list[int]) -> Read:
        value, neg, absolute = op.srcs[k]
        if value.kind == "const":
            bits = value.bits
            if literal(op, k, op.srcs[k]) is not None:
                if bits not in literals:
                    literals.append(bits)
                return Read("literal", channel=literals.index(bits), bits=bits)
            if bits in INLINE:
                return Read("inline", bits=bits)
            return Read("inline", bits=bits ^ SIGN, neg=True)
        if value.kind == "constant":
            buffer, element, channel = value.place
            return Read("constant", buffer, channel, element, neg=neg, abs=absolute)
        if value in draft.forwards:
            kind, channel = draft.forwards[value]
            return Read(kind, channel=channel, neg=neg, abs=absolute)
        return Read("gpr", value.web.number, value.web.channel, neg=neg, abs=absolute)

    # Fetches and stores

    def fetch(self, op: Op) -> Fetch:
        select = ["_"] * 4
        dest = 0
        for c, value in enumerate(op.results):
            if value in self.allocation.written:
                select[value.web.channel] = "xyzw"[c]
                dest = value.web.number
        source, letters = None, ""
        for s in op.srcs:
            if s.value.located:
                source = s.value.web.number
                letters += "xyzw"[s.value.web.channel]
            else:
                letters += "1" if s.value.bits else "0"
        offset = op.info["offset"] if op.name != "MEM_READ" else (op.info["offset"],)
        return Fetch(
            op.name, dest, "".join(select), source, letters, tuple(offset), op.at, self.line(op),
            op.info.get("resource", 0), op.info.get("unnormalised", True),
        )  # fmt: skip

    def store(self, op: Op) -> Store:
        mask = op.info["mask"]
        select, source = ["_"] * 4, 0
        for component, s in zip(mask, op.srcs):
            if s.value.located:
                select[component] = "xyzw"[s.value.web.channel]
                source = s.value.web.number
            else:
                select[component] = "1" if s.value.bits else "0"
        if op.name == "EXPORT":
            return Store("EXPORT", source, "".join(select), op.info["target"], None, op.at, self.line(op))
        index = op.srcs[len(mask)].value.web.number if op.info["indexed"] else None
        return Store("MEM_WRITE", source, "".join(select), op.info["offset"], index, op.at, self.line(op))


def _inverted(control: Control) -> Clause | None:
    """The clause with its test turned into the opposite, if the chip has that."""
    clause = control.clause
    assert clause is not None
    bundles = []
    found = False
    for bundle in clause.bundles:
        operations = []
        for o in bundle.operations:
            if o.row.predicate:
                if o.name not in OPPOSITE:
                    return None
                name, swap = OPPOSITE[o.name]
                if swap and o.slot == T:
                    return None
                if swap:
                    o = replace(o, reads=o.reads[::-1], swizzle=_swapped(o.swizzle))
                o = replace(o, name=name)
                found = True
            operations.append(o)
        bundles.append(replace(bundle, operations=tuple(operations)))
    return replace(clause, bundles=tuple(bundles)) if found else None


def _swapped(swizzle: str) -> str:
    """The vector swizzle that reads two exchanged operands in the same cycles."""
    return f"VEC_{swizzle[5]}{swizzle[4]}{swizzle[6]}"
