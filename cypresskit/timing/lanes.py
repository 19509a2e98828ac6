"""The lanes of some wavefronts: compiled clauses run on all of them at once, without data.

The arithmetic of addresses and branches is done as compiled (``affine``); what is read from memory
is only marked as such. Each clause becomes a ``work.Clause`` with the cache lines of its fetches,
or the clocks of its LDS accesses.
"""

from dataclasses import replace

import numpy as np

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import (
    TEMPORARY,
    Bundle,
    Control,
    FetchInstruction,
    Operation,
    StoreInstruction,
)
from cypresskit.il.meaning import split
from cypresskit.machine import places, shape
from cypresskit.machine.vliw import Processor, Test
from cypresskit.timing.affine import (
    IRREGULAR,
    ZERO,
    Affine,
    Exactness,
    compute,
    from_memory,
    merge,
    modified,
)
from cypresskit.timing.surfaces import Motion, NotAffine, Surfaces
from cypresskit.timing.work import ALU, BARRIER, WRITE, Clause, Stream, fetch_clause

Register = tuple[int, int]  # number, channel


class DataDependentError(ValueError):
    """A kernel that can't be timed without its data."""


class Lanes(Processor):
    """All lanes of ``wavefronts`` (numbers in dispatch order). ``clauses``: those run since the
    list was last emptied.

    In a ``dry`` run only registers matter. A clause that stands for ``turns`` of a loop is run by
    all lanes (``masked`` is False): what the inactive ones hold is restored after the loop.
    """

    poison = ZERO

    def __init__(self, code: Code, surfaces: Surfaces, wavefronts: np.ndarray):
        self.surfaces, self.shape = surfaces, surfaces.shape
        self.x, self.y, there = shape.lanes(self.shape, wavefronts)
        super().__init__(
            code, shape.input_registers(self.shape, self.x, self.y), self.shape.constants
        )
        self.masks.set(there)
        self.there = self.masks.count
        self.exact = Exactness()
        self.turns, self.dry, self.masked = 1, False, True
        self.clauses: list[Clause] = []
        self.streams: list[Stream] = []  # of the running clause's LDS operations
        self.breaks: list[
            tuple[Affine, bool]
        ] = []  # of a loop's turn: the test, and whether who passes it leaves

    @property
    def whole(self) -> bool:
        """Whether all lanes that exist are active."""
        return self.masks.count == self.there

    # Clauses

    def clause(self, control: Control) -> Test:
        if control.fetches and not self.dry:
            self.clauses.append(fetch_clause([self._fetched(f) for f in control.fetches]))
        self.bundles, self.streams = 0, []
        test = super().clause(control)
        if control.bundles and not self.dry:
            self.clauses.append(Clause(ALU, self.bundles, tuple(self.streams)))
        return test

    def bundle(self, bundle: Bundle) -> Test:
        waits = self.shape.group_wavefronts > 1 and any(
            o.row.kind == "sync" for o in bundle.operations
        )
        if waits and not self.dry:
            self.clauses += [Clause(ALU, self.bundles), Clause(BARRIER)]
            self.bundles = 0  # of the clause, since the barrier
        return super().bundle(bundle)

    def known(self, bits: np.ndarray) -> Affine:
        return Affine(bits)

    def modified(self, word: Affine, neg: bool, absolute: bool) -> Affine:
        return modified(word, neg, absolute)

    def compute(
        self, parts: tuple[Operation, ...], words: list[Affine], low: list[Affine]
    ) -> Affine:
        return compute(parts, words, low, self.exact)

    def halves(self, word: Affine) -> tuple[Affine, Affine]:
        if word is IRREGULAR or word.bits.dtype != np.uint64:
            return word, word
        low, high = split(word.bits)
        return replace(word, bits=low), replace(word, bits=high)

    def passed(self, predicate: Operation, word: Affine) -> np.ndarray:
        self.check(word, predicate.at)
        if word is IRREGULAR or word.test:
            raise NotAffine
        return np.broadcast_to(word.bits != 0, self.items)

    def write(self, place: tuple[int, int], word: Affine) -> None:
        if self.masked and not self.whole and place[0] < TEMPORARY:
            word = merge(word, self.registers.get(place, ZERO), self.masks.active)
        self.registers[place] = word

    def fetch(self, f: FetchInstruction) -> None:
        for channel, component in enumerate(f.select):
            if component != "_":
                self.write((f.dest, channel), from_memory(f.at))

    def share(self, o: Operation, words: list[Affine]) -> None:
        if not self.dry:
            self.streams.append(self._lds_stream(o, words))
        if not o.name.startswith("LDS_WRITE"):
            self.queue.append([from_memory(o.at)] * 2)

    # Accesses

    def check(self, word: Affine, user: int) -> None:
        """Refuse an address or a branch, of instruction ``user``, that depends on what was read
        from memory.
        """
        if not (word.loaded & self.masks.active).any():
            return
        program = self.code.program
        raise DataDependentError(
            f"{program.where(program.body[word.at].line)}\n    reads data that an address or a"
            f" branch depends on, the one in\n{program.where(program.body[user].line)}\n    Timing"
            " runs the address arithmetic without data: take addresses from the work-item's id,"
            " constants and counters instead."
        )

    def _usable(self, word: Affine, user: int, kind: str) -> tuple[np.ndarray, float]:
        """The bits of a word that instruction ``user`` takes its address from, and what a turn adds
        to the number.
        """
        self.check(word, user)
        if word is IRREGULAR or word.test or (word.step is not None and word.kind != kind):
            raise NotAffine
        bits = np.broadcast_to(word.bits, self.items)
        if word.step is None or not word.step.any():
            return bits, 0.0
        steps = np.broadcast_to(word.step, self.items)[self.masks.active]
        if (steps != steps[0]).any() or steps[0] % 1:
            raise NotAffine
        return bits, float(steps[0])

    def _fetched(self, f: FetchInstruction) -> Stream:
        """The lines of a fetch."""
        if f.name == "MEM_READ":
            return self._element(self.component(f.source, f.coordinates), f.offset[0], f.at, False)
        words = [self.component(f.source, letter) for letter in f.coordinates]
        whole = f.name == "LD"
        rows, steps = zip(
            *(self._usable(word, f.at, "int" if whole else "float") for word in words)
        )
        texture = self.shape.textures[f.resource]
        x, y, _ = places.texel(rows, texture, f.offset, whole=whole)
        dx, dy = (*(int(step) for step in steps), 0)[:2]
        return self.surfaces.fetch(f.resource, x, y, self.masks.active, Motion(dx, dy, self.turns))

    def _element(self, word: Affine, offset: int, user: int, stores: bool) -> Stream:
        bits, step = self._usable(word, user, "int")
        x = places.element(offset, bits, self.items)
        return self.surfaces.element(x, self.masks.active, Motion(int(step), 0, self.turns), stores)

    def store(self, s: StoreInstruction) -> None:
        """Run a store. Stores that follow one another are one clause."""
        if s.name == "EXPORT":
            made = self.surfaces.output(s.offset, self.x, self.y, self.masks.active)
        else:
            made = self._element(self.component(s.index, "x"), s.offset, s.at, True)
        if self.clauses and self.clauses[-1].kind == WRITE:
            self.clauses[-1] = Clause(WRITE, 0, (*self.clauses[-1].streams, made))
        else:
            self.clauses.append(Clause(WRITE, 0, (made,)))

    def _lds_stream(self, o: Operation, words: list[Affine]) -> Stream:
        """The clocks of an LDS operation, for the one or two words that each work-item asks for."""
        assert o.lds is not None
        addresses = words[: 2 if o.name == "LDS_READ2_RET" else 1]
        bits, steps = zip(*(self._usable(word, o.at, "int") for word in addresses))
        if (
            steps[0] != steps[-1] or steps[0] % 4
        ):  # a step that all share changes the banks, not the conflicts
            raise NotAffine
        bytes_ = [places.lds_byte(word) & ~np.int64(3) for word in bits]
        if "_REL" in o.name:
            bytes_.append(bytes_[0] + 4 * o.lds.offset)
        return self.surfaces.lds(np.stack(bytes_), self.masks.active)
