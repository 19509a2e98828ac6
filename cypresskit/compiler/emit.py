"""Turn schedule and register numbers into hardware code: the last pass.

Operands become registers, PV and PS, literals or constants. Control flow becomes the hardware's: an
``if`` pushes the execution mask before the clause with the test (ALU_PUSH_BEFORE), JUMP skips a
part whose mask is empty, ELSE inverts the mask, POP restores it. A test that only leaves a loop
becomes ALU_BREAK, with the opposite relation.
"""

from dataclasses import replace

from cypresskit.compiler.allocate import Allocation
from cypresskit.compiler.assembly import (
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    Read,
    StoreInstruction,
)
from cypresskit.compiler.ir import (
    BasicBlock,
    FetchDetail,
    Function,
    LdsAccess,
    Op,
    StoreDetail,
    Word,
)
from cypresskit.compiler.isa import INLINE, T
from cypresskit.compiler.ports import Draft, Placed, Plans, needs_literal
from cypresskit.il.bits import SIGN
from cypresskit.il.program import LETTERS

OPPOSITE = {"PRED_SETE_INT": "PRED_SETNE_INT", "PRED_SETNE_INT": "PRED_SETE_INT"}


def emit(function: Function, plans: Plans, allocation: Allocation) -> tuple[Control, ...]:
    """Return the control-flow instructions of a scheduled function, with their clauses."""
    return tuple(_Emitter(function, plans, allocation).run())


class _Emitter:
    """Emits one function.

    Attributes
    ----------
    controls
        The code so far.
    opened
        Indices of JUMP, ELSE and LOOP_START whose target isn't known yet.
    depth
        The number of loops around the next instruction.
    """

    def __init__(self, function: Function, plans: Plans, allocation: Allocation):
        self.items = function.items
        self.plans = plans
        self.program = function.program
        self.numbers, self.written = allocation.numbers, allocation.written
        self.controls: list[Control] = []
        self.opened: list[int] = []
        self.depth = 0

    def run(self) -> list[Control]:
        n = 0
        while n < len(self.items):
            item = self.items[n]
            if isinstance(item, BasicBlock):
                self.block(item)
            elif item == "if":
                n += self.begin_if(n)
            else:
                self.control_flow(n, item)
            n += 1
        self.add("END")
        return self.controls

    def control_flow(self, n: int, keyword: str) -> None:
        """Emit item ``n``: control flow without a test."""
        if keyword == "loop":
            self.depth += 1
            header = self.items[n + 1]
            assert isinstance(header, BasicBlock)
            self.opened.append(self.add("LOOP_START_DX10", header.loop))
        elif keyword == "endloop":
            start = self.opened.pop()
            end = self.add("LOOP_END", self.controls[start].at, target=start + 1)
            self.set_target(start, end + 1)
            self.depth -= 1
        elif keyword == "break":
            self.add("LOOP_BREAK")
        elif keyword == "endif":
            self.set_target(self.opened.pop(), self.add("POP"))
        elif not self.is_empty(n + 1) or self.items[n + 2] != "endif":
            inverting = self.add("ELSE")
            self.set_target(self.opened.pop(), inverting)
            self.opened.append(inverting)

    def is_empty(self, n: int) -> bool:
        """Return whether item ``n`` is a block without code."""
        item = self.items[n]
        return isinstance(item, BasicBlock) and not self.plans[item]

    def add(self, name: str, at: int | None = None, **fields) -> int:
        """Append a control-flow instruction. Return its index. By default it comes from the same IL
        instruction as the one before.
        """
        if at is None:
            at = self.controls[-1].at if self.controls else 0
        self.controls.append(Control(name, depth=self.depth, at=at, **fields))
        return len(self.controls) - 1

    def set_target(self, index: int, target: int) -> None:
        """Set the target of the control-flow instruction at ``index``."""
        self.controls[index] = replace(self.controls[index], target=target)

    def line(self, at: int) -> int:
        return self.program.body[at].line

    def begin_if(self, n: int) -> int:
        """Emit an if: push the mask before the clause with the test, or break if that is all it
        does. Return how many more items this covers.
        """
        last = self.controls[-1]
        items = [
            "" if self.is_empty(k) else self.items[k]
            for k in range(n + 1, min(n + 7, len(self.items)))
        ]
        if items == ["", "break", "", "else", "", "endif"]:
            self.controls[-1] = replace(last, name="ALU_BREAK", bundles=_inverted(last))
            return len(items)
        self.controls[-1] = replace(last, name="ALU_PUSH_BEFORE")
        self.opened.append(self.add("JUMP"))
        return 0

    def block(self, block: BasicBlock) -> None:
        for plan in self.plans[block]:
            if plan.kind == "ALU":
                bundles = tuple(map(self.bundle, plan.bundles))
                self.add("ALU", bundles[0].operations[0].at, bundles=bundles)
            elif plan.kind == "TEX":
                self.add("TEX", plan.ops[0].at, fetches=tuple(map(self.fetch, plan.ops)))
            else:
                store = self.store(plan.ops[0])
                name = "EXPORT"
                if store.name == "MEM_WRITE":
                    name = "MEM_EXPORT_WRITE" if store.index is None else "MEM_EXPORT_WRITE_IND"
                self.add(name, store.at, store=store)

    def bundle(self, draft: Draft) -> Bundle:
        literals: list[int] = []
        slots = [placed for _, placed in sorted(draft.slots.items())]
        ops = list(dict.fromkeys(placed.op for placed in slots))
        operations = [
            self.operation(draft, placed, ops.index(placed.op), literals) for placed in slots
        ]
        return Bundle(tuple(operations), tuple(literals))

    def operation(
        self, draft: Draft, placed: Placed, number: int, literals: list[int]
    ) -> Operation:
        op, slot, result = placed.op, placed.slot, placed.result
        name = op.name
        reads = tuple(self.read(draft, op, k, literals) for k in placed.operands)
        if op.popped:
            name = "MOV"
            reads = (Read("queue", index=placed.place),)
        channel = slot % T if result is None else result.vreg.channel or 0
        dest = None
        if result is not None and result in self.written:
            dest = self.numbers[result.vreg], channel
        return Operation(
            name,
            slot,
            channel,
            reads,
            dest,
            swizzle=draft.ports.swizzles[placed.port_reads] if placed.port_reads >= 0 else "",
            at=op.at,
            line=self.line(op.at),
            number=number,
            place=placed.place,
            lds=op.detail if isinstance(op.detail, LdsAccess) else None,
        )

    def read(self, draft: Draft, op: Op, k: int, literals: list[int]) -> Read:
        word, neg = op.srcs[k]
        if needs_literal(op, k, op.srcs[k]):
            if word.bits not in literals:
                literals.append(word.bits)
            return Read("literal", channel=literals.index(word.bits), bits=word.bits)
        if word.kind == "const":
            negated = word.bits not in INLINE
            return Read("inline", bits=word.bits ^ SIGN if negated else word.bits, neg=negated)
        if word.kind == "constant":
            buffer, element, channel = word.place
            return Read("constant", buffer, channel, element, neg=neg)
        if word in draft.forwards:
            kind, channel = draft.forwards[word]
            return Read(kind, channel=channel, neg=neg)
        return Read("gpr", self.numbers[word.vreg], word.vreg.channel or 0, neg=neg)

    def fetch(self, op: Op) -> FetchInstruction:
        detail = op.detail
        dest = 0
        assert isinstance(detail, FetchDetail)
        select = ["_"] * 4
        for c, word in enumerate(op.results):
            if word in self.written:
                select[word.vreg.channel or 0] = LETTERS[c]
                dest = self.numbers[word.vreg]
        return FetchInstruction(
            op.name,
            dest,
            "".join(select),
            self.register(op.register_words),
            "".join(_selected(s.value) for s in op.srcs),
            detail.offset,
            op.at,
            self.line(op.at),
            detail.resource,
        )

    def store(self, op: Op) -> StoreInstruction:
        detail = op.detail
        assert isinstance(detail, StoreDetail)
        select = ["_"] * 4
        words = [s.value for s in op.srcs]
        for component, word in zip(detail.mask, words):
            select[component] = _selected(word)
        source = (
            self.register([word for word in words[: len(detail.mask)] if word.has_register]) or 0
        )
        index = self.register(words[len(detail.mask) :])
        return StoreInstruction(
            op.name, source, "".join(select), detail.place, index, op.at, self.line(op.at)
        )

    def register(self, words: list[Word]) -> int | None:
        """Return the number of the register that holds these words; None if there are none."""
        return self.numbers[words[0].vreg] if words else None


def _selected(word: Word) -> str:
    """Return the letter by which a fetch or store names a word: its channel, or 0 or 1 for these
    constants.
    """
    if word.has_register:
        return LETTERS[word.vreg.channel or 0]
    return "1" if word.bits else "0"


def _inverted(control: Control) -> tuple[Bundle, ...]:
    """Return the bundles of an ALU clause with its test inverted."""
    test = next(o for o in control.operations if o.row.is_test)
    turned = replace(test, name=OPPOSITE[test.name])
    return tuple(
        replace(bundle, operations=tuple(turned if o is test else o for o in bundle.operations))
        for bundle in control.bundles
    )
