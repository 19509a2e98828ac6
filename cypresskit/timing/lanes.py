"""The lanes of some wavefronts: compiled clauses run on all of them at once, without data.

The arithmetic of addresses and branches is done as compiled (``affine``); what is read from memory is only marked as
such. Each clause becomes a ``work.Clause`` with the cache lines of its fetches, or the clocks of its LDS accesses.
"""

from dataclasses import replace

import numpy as np

from cypresskit.compiler import Code
from cypresskit.compiler.assembly import TEMPORARY, Bundle, Control, FetchInstruction, Operation, Read, StoreInstruction
from cypresskit.compiler.isa import T
from cypresskit.il.meaning import ONE, split
from cypresskit.machine import ids, places
from cypresskit.machine.masks import Masks
from cypresskit.machine.shape import WAVEFRONT
from cypresskit.timing.affine import IRREGULAR, ZERO, Affine, Exactness, compute, from_memory, merge, modified
from cypresskit.timing.surfaces import Motion, NotAffine, Surfaces
from cypresskit.timing.work import ALU, BARRIER, WRITE, Clause, Stream, fetch_clause

Register = tuple[int, int]  # number, channel


class SliceError(ValueError):
    """A kernel that can't be timed without its data."""


class Lanes:
    """All lanes of ``wavefronts`` (numbers in dispatch order). ``clauses``: those that were run since they were taken.

    In a ``dry`` run only registers matter. A clause that stands for ``turns`` of a loop is run by all lanes
    (``masked`` is False): what the inactive ones hold is restored after the loop.
    """

    def __init__(self, code: Code, surfaces: Surfaces, wavefronts: np.ndarray):
        self.code, self.surfaces, self.shape = code, surfaces, surfaces.shape
        self.items = WAVEFRONT * len(wavefronts)
        first, second, there = ids.lanes(self.shape, wavefronts)
        inputs = ids.input_registers(self.shape, first, second)
        self.x, self.y = first, second
        if self.shape.pixels:
            self.registers = {(0, c): Affine(inputs["vWinCoord0"][c], "float") for c in (0, 1)}
        else:
            self.registers = {}
            for n, name in enumerate(("vTidInGrp", "vThreadGrpId")):
                self.registers |= {(n, c): Affine(inputs[name][c]) for c in (0, 1, 2)}
                self.registers[n, 3] = Affine(inputs[f"{name}Flat"][0])
        self.forwards: dict[tuple[str, int], Affine] = {}  # PV and PS
        self.queue: list[tuple[Affine, Affine]] = []  # of the LDS
        self.masks = Masks(self.items)
        self.masks.set(there)
        self.there = self.masks.count
        self.exact = Exactness()
        self.turns, self.dry, self.masked = 1, False, True
        self.clauses: list[Clause] = []
        self.breaks: list[tuple[Affine, bool]] = []  # of a loop's turn: the test, and whether who passes it leaves

    @property
    def whole(self) -> bool:
        """Whether all lanes that exist are active."""
        return self.masks.count == self.there

    # Clauses

    def clause(self, control: Control) -> tuple[Operation, Affine] | None:
        """Run a clause; its predicate and what that is, if it has one."""
        if control.fetches:
            if not self.dry:
                self.clauses.append(fetch_clause([self._fetch(f) for f in control.fetches]))
            for f in control.fetches:
                for channel, component in enumerate(f.select):
                    if component != "_":
                        self._write((f.dest, channel), from_memory(f.at))
            return None
        test, count, streams = None, 0, []
        for bundle in control.bundles:
            if not self.dry:
                streams += self._lds_streams(bundle)
                if self.shape.group_wavefronts > 1 and any(o.row.kind == "sync" for o in bundle.operations):
                    self.clauses += [Clause(ALU, count), Clause(BARRIER)]
                    count = 0
            count += 1
            test = self._bundle(bundle) or test
        if not self.dry:
            self.clauses.append(Clause(ALU, count, tuple(streams)))
        return test

    def _bundle(self, bundle: Bundle) -> tuple[Operation, Affine] | None:
        test = None
        results: list[tuple[Operation, Affine]] = []
        for parts in bundle.parts:
            first = parts[0]
            if first.row.kind == "sync":
                continue
            if first.row.kind == "lds":
                if not first.name.startswith("LDS_WRITE"):
                    self.queue.append((from_memory(first.at), from_memory(first.at)))
            else:
                words = [self._read(r) for r in first.reads]
                low = [self._read(r) for r in parts[-1].reads] if first.row.kind == "double" else []
                if first.row.predicate:
                    test = first, compute(parts, words, low, self.exact)
                elif first.row.words == 2:
                    results += _halves(parts, compute(parts, words, low, self.exact))
                elif first.name == "MOV":
                    results += [(o, compute((o,), [self._read(r) for r in o.reads], [], self.exact)) for o in parts]
                else:
                    results.append((first, compute(parts, words, low, self.exact)))
        self.forwards = {}
        for o, word in results:
            self.forwards[("ps", 0) if o.slot == T else ("pv", o.slot)] = word
            if o.dest is not None:
                self._write(o.dest, word)
        if any(r.kind == "queue" for o in bundle.operations for r in o.reads):
            self.queue.pop(0)
        return test

    def _read(self, read: Read) -> Affine:
        kind = read.kind
        if kind == "gpr":
            word = self.registers.get((read.index, read.channel), ZERO)
        elif kind in ("pv", "ps"):
            word = self.forwards[kind, read.channel if kind == "pv" else 0]
        elif kind == "queue":
            word = self.queue[0][read.index]
        elif kind == "constant":
            word = Affine(self.shape.constants[read.index][read.element, read.channel : read.channel + 1])
        else:
            word = Affine(np.array([read.bits], np.uint32))
        return modified(word, read.neg, read.abs)

    def _write(self, place: tuple[int, int], word: Affine) -> None:
        if self.masked and not self.whole and place[0] < TEMPORARY:
            word = merge(word, self.registers.get(place, ZERO), self.masks.active)
        self.registers[place] = word

    # Accesses

    def check(self, word: Affine, user: int) -> None:
        """Refuse an address or a branch, of instruction ``user``, that depends on what was read from memory."""
        if not (word.loaded & self.masks.active).any():
            return
        program = self.code.program
        raise SliceError(
            f"{program.where(program.body[word.at].line)}\n    reads data that an address or a branch depends on, the "
            f"one in\n{program.where(program.body[user].line)}\n    Timing runs the address arithmetic without data: "
            "take addresses from the work-item's id, constants and counters instead."
        )

    def _usable(self, word: Affine, user: int, kind: str) -> tuple[np.ndarray, float]:
        """The bits of a word that instruction ``user`` takes its address from, and what a turn adds to the number."""
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

    def _fetch(self, f: FetchInstruction) -> Stream:
        """The lines of a fetch."""
        if f.name == "MEM_READ":
            word = ZERO if f.source is None else self._located(f.source, f.coordinates)
            return self._element(word, f.offset[0], f.at, False)
        words = [self._located(f.source, letter) for letter in f.coordinates]
        whole = f.name == "LD"
        rows, steps = zip(*(self._usable(word, f.at, "int" if whole else "float") for word in words))
        if any(steps) and not (whole or f.unnormalised):
            raise NotAffine
        of = self.shape.textures[f.resource]
        x, y, _ = places.texel(rows, of, f.offset, whole=whole, unnormalised=f.unnormalised)
        dx, dy = (*(int(step) for step in steps), 0)[:2]
        return self.surfaces.fetch(f.resource, x, y, self.masks.active, Motion(dx, dy, self.turns))

    def _located(self, source: int | None, letter: str) -> Affine:
        """The coordinate that a fetch takes from a register's channel, or 0 or 1."""
        if letter in "01":
            return Affine(np.array([ONE if letter == "1" else 0], np.uint32), "float")
        assert source is not None
        return self.registers.get((source, "xyzw".index(letter)), ZERO)

    def _element(self, word: Affine, offset: int, user: int, stores: bool) -> Stream:
        bits, step = self._usable(word, user, "int")
        x = places.element(offset, bits, self.items)
        return self.surfaces.element(x, self.masks.active, Motion(int(step), 0, self.turns), stores)

    def store(self, s: StoreInstruction) -> None:
        """Run a store. Stores that follow one another are one clause."""
        if s.name == "EXPORT":
            made = self.surfaces.output(s.offset, self.x, self.y, self.masks.active)
        else:
            word = ZERO if s.index is None else self.registers.get((s.index, 0), ZERO)
            made = self._element(word, s.offset, s.at, True)
        if self.clauses and self.clauses[-1].kind == WRITE:
            self.clauses[-1] = Clause(WRITE, 0, (*self.clauses[-1].streams, made))
        else:
            self.clauses.append(Clause(WRITE, 0, (made,)))

    def _lds_streams(self, bundle: Bundle) -> list[Stream]:
        return [self._lds_stream(o) for o in bundle.operations if o.lds is not None]

    def _lds_stream(self, o: Operation) -> Stream:
        """The clocks of an LDS operation, for the one or two words that each work-item asks for."""
        assert o.lds is not None
        addresses = o.reads[: 2 if o.name == "LDS_READ2_RET" else 1]
        bits, steps = zip(*(self._usable(self._read(read), o.at, "int") for read in addresses))
        if steps[0] != steps[-1] or steps[0] % 4:  # a step that all share changes the banks, not the conflicts
            raise NotAffine
        words = [places.lds_byte(word) & ~np.int64(3) for word in bits]
        if "_REL" in o.name:
            words.append(words[0] + 4 * o.lds.offset)
        return self.surfaces.lds(np.stack(words), self.masks.active)


def _halves(parts: tuple[Operation, ...], word: Affine) -> list[tuple[Operation, Affine]]:
    """A result of two words, by the slots that write them."""
    if word is IRREGULAR or word.bits.dtype != np.uint64:
        return [(o, word) for o in parts]
    low, high = split(word.bits)
    return [(o, replace(word, bits=high if o.slot % 2 else low)) for o in parts]
