"""A launch: a program, its domain and its arrays, checked; every array as 32-bit words.

Results are computed in copies. ``engines.launch`` gives a ``Launch`` to an engine.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cypresskit.devices import Range
from cypresskit.il import Instruction, Program
from cypresskit.il.dataflow import Key, defines, keys, uses
from cypresskit.il.errors import ArgumentError, shorten
from cypresskit.il.meaning import ONE
from cypresskit.il.program import LETTERS
from cypresskit.machine import arguments
from cypresskit.machine.shape import Extent, LaunchShape, coordinates, input_registers

MAX_ITEMS = 1 << 28  # work-items of one launch: more would take longer than a day
Arrays = Mapping[int, np.ndarray]  # inputs, constants or outputs, by number
MAX_INSTRUCTIONS = 200_000  # per work-item: SGEMM with k = 4096 takes 150,000


class KernelError(RuntimeError):
    """A kernel did something invalid.

    Attributes
    ----------
    kind
        "store" (outside its memory), "barrier" (that part of a group doesn't reach) or "endless" (a
        loop).
    line, at
        The kernel's line, and the index of its instruction in ``Program.body``.
    work_item
        Its place in the domain, as (x, y) or a number, or None.
    """

    def __init__(self, message: str, line: int, work_item: Any, kind: str, at: int) -> None:
        super().__init__(message, line, work_item, kind, at)
        self.line, self.work_item, self.kind, self.at = line, work_item, kind, at

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, eq=False)
class Surface(Extent):
    """A texture or output. ``words``: uint32 of shape (height, width, words per texel), the latter
    1, 2 or 4. ``single``: whether the data is float32, whose missing components read 0, 0, 1.0.
    """

    words: np.ndarray
    single: bool

    def texels(self, x: np.ndarray, y: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return the texels at coordinates that are ``inside``, 0 for the others: uint32 of shape
        (items, 4).
        """
        if self.texel == 16 and inside.all():
            chosen: np.ndarray = self.words.reshape(-1, 4).take(y * self.width + x, axis=0)
            return chosen
        texels = np.zeros((len(inside), 4), np.uint32)
        texels[inside, 3] = ONE * self.single
        texels[inside, : self.texel // 4] = self.words[y[inside], x[inside]]
        return texels


@dataclass(frozen=True, eq=False)
class Launch:
    """A checked launch: its ``shape`` and its arrays. These are C-contiguous uint32; ``outputs``
    and global ``memory``, of shape (elements, 4), are working copies.
    """

    shape: LaunchShape
    textures: Mapping[int, Surface]
    outputs: Mapping[int, Surface]
    memory: np.ndarray
    max_instructions: int

    @property
    def program(self) -> Program:
        """What is launched."""
        return self.shape.program

    @cached_property
    def ids(self) -> dict[str, np.ndarray]:
        """Input registers: name to uint32 bits of shape (4, items)."""
        return input_registers(self.shape, *coordinates(self.shape, np.arange(self.shape.items)))

    @cached_property
    def group(self) -> np.ndarray:
        """The workgroup of each work-item; in pixel mode, a number for each."""
        return np.arange(self.shape.items) // self.shape.group_items

    def part(self, items: np.ndarray) -> "Launch":
        """Return the launch of some work-items: of whole workgroups. It shares the memory; its
        outputs are one row, with a texel for each.
        """
        outputs = {
            n: replace(
                old,
                width=len(items),
                height=1,
                words=old.words.reshape(1, -1, old.texel // 4)[:, items],
            )
            for n, old in self.outputs.items()
        }
        shape = replace(self.shape, domain=(len(items), 1, 1), outputs=outputs)
        part = replace(self, shape=shape, outputs=outputs)
        vars(part)["ids"] = input_registers(self.shape, *coordinates(self.shape, items))
        return part

    def write_back(
        self,
        outputs: Arrays | None,
        global_memory: np.ndarray | None,
    ) -> None:
        """Copy the results to the caller's arrays."""
        pairs = [((outputs or {})[n], surface.words) for n, surface in self.outputs.items()]
        if global_memory is not None:
            pairs.append((global_memory, self.memory))
        for array, words in pairs:
            array[...] = words.reshape(-1).view(array.dtype).reshape(array.shape)

    def exist(self, element: np.ndarray) -> np.ndarray:
        """Return whether elements of global memory exist (bool)."""
        return (element >= 0) & (element < len(self.memory))

    def elements(self, element: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return elements of global memory, uint32 of shape (items, 4), 0 for those that don't
        exist; and which exist.
        """
        inside = self.exist(element)
        words = np.zeros((len(element), 4), np.uint32)
        words[inside] = self.memory[element[inside]]
        return words, inside

    def store_error(self, at: int, item: int, place: int) -> KernelError:
        """Return the error of a store by ``body[at]`` to a byte of LDS, or an element of global
        memory, that doesn't exist.
        """
        i = self.program.body[at]
        what = f"to g[{place}], which has {len(self.memory)} elements"
        if i.op.kind == "lds":
            what = (
                f"to byte {place} of LDS {i.controls.id}, which has"
                f" {self.program.lds[i.controls.id]}"
            )
        advice = "Check the address arithmetic, or the size of the domain."
        what = f"{self.shape.item_name(item)} stores {what}. No array was changed. {advice}"
        return kernel_error(self.shape, "store", at, what, item)


def endless_error(shape: LaunchShape, at: int, count: int, item: int | None = None) -> KernelError:
    """Return the error of a loop, opened at ``body[at]``, that has not ended after ``count``
    instructions of work-item ``item``, or of any.
    """
    culprit = "a work-item" if item is None else shape.item_name(item)
    why = _tested(shape.program, at)
    what = f"this loop has not ended after {count:,} instructions of {culprit}. {why}"
    return kernel_error(shape, "endless", at, what, item)


def _tested(program: Program, at: int) -> str:
    """Return why the loop opened at ``body[at]`` may not end: which lines change what it tests."""
    asked = "Does its break condition become true in time?"
    depth = 0
    loop = []
    for i in program.body[at:]:
        depth += {"loop": 1, "endloop": -1}.get(i.op.flow, 0)
        loop.append(i)
        if not depth:
            break
    end = next((i for i in loop if i.op.flow == "break"), None)
    decides = keys(uses(program, end)) if end else set()
    test = next((i for i in loop if decides & {*defines(i)}), end)
    counted = keys(uses(program, test)) if test else set()
    if not test or not counted:
        return asked
    names = " and ".join(f"r{number}.{LETTERS[component]}" for number, component in sorted(counted))
    said = f"Line {test.line} tests {names}"
    setting = [i for i in loop if counted & {*defines(i)}]
    anew = [i for i in setting if not counted & {*defines(i)} & keys(uses(program, i))]
    if anew:
        return f"{said}; line {anew[0].line} sets it anew in each iteration."
    if setting:
        return f"{asked} {said}; line {setting[0].line} {_change(program, setting[0], counted)}."
    return f"{said}; no line of the loop sets it."


def _change(program: Program, i: Instruction, counted: Collection[Key]) -> str:
    """Return what an instruction does to a counted component: "adds l0.z = 1", or "changes it"."""
    if i.opcode != "add" or any(source.negated for source in i.sources):
        return "changes it"
    for number, c in sorted({*defines(i)}.intersection(counted)):
        for source in i.sources:
            letter = source.swizzle[c]
            words = program.literals.get(source.register.index)
            if source.register.kind == "l" and words and letter in LETTERS:
                value = float(np.uint32(words[LETTERS.index(letter)]).view(np.float32))
                return f"adds {source.register}.{letter} = {value:g} to r{number}.{LETTERS[c]}"
    return "changes it"


def kernel_error(
    shape: LaunchShape, kind: str, at: int, what: str, item: int | None = None
) -> KernelError:
    """Return an error of ``body[at]``, caused by work-item ``item``."""
    i = shape.program.body[at]
    place = None if item is None else shape.place(item)
    message = f"{shape.program.where(i.line)}{shape.program.called(i)}\n    {what}"
    return KernelError(message, i.line, place, kind, at)


def check_program(caller: str, given: object) -> None:
    """Raise ``TypeError`` if ``given`` is no ``Program``; ``caller`` is the function that takes
    one.
    """
    if not isinstance(given, Program):
        raise ArgumentError(
            f"{caller} takes a Program, not {shorten(given)}: ck.assemble makes one of IL text,"
            " and ck.kernels[name].program is a kernel's"
        )


def prepare(
    program: Program,
    domain: int | Sequence[int],
    *,
    inputs: Any = None,
    constants: Any = None,
    outputs: Any = None,
    global_memory: Any = None,
    max_instructions: int | None = None,
) -> Launch:
    """Check the arguments of ``engines.launch`` against the program. Return them as a
    ``Launch``.
    """
    check_program("launch", program)
    limit = _limit(MAX_INSTRUCTIONS if max_instructions is None else max_instructions)
    sizes = arguments.whole_domain(program, domain)
    if (items := math.prod(sizes)) > MAX_ITEMS:
        raise ArgumentError(
            f"the domain {domain!r} has {items:,} work-items: at most {MAX_ITEMS:,} are run"
        )
    named = {"constants": constants, "outputs": outputs, "inputs": inputs}
    given = {name: arguments.by_number(name, arrays) for name, arrays in named.items()}
    given["global_memory"] = {} if global_memory is None else {0: global_memory}
    results = {f"outputs[{n}]": array for n, array in given["outputs"].items()}
    if global_memory is not None:
        results["global_memory"] = global_memory
    arguments.check_results(results)
    arguments.check_needs(program, given)
    textures = {n: _surface(a, f"inputs[{n}]", program) for n, a in given["inputs"].items()}
    streams = {n: _output(a, n, program, sizes) for n, a in given["outputs"].items()}
    shape = LaunchShape(program, sizes, textures, given["constants"], streams)
    memory = _global(np.zeros(0, np.uint32) if global_memory is None else global_memory, program)
    return Launch(shape, textures, streams, memory, limit)


def _limit(given: Any) -> int:
    """Return ``max_instructions`` as a whole number."""
    if not Range(least=1).has(given, whole=False):
        raise ArgumentError(f"max_instructions is a number of at least 1, not {given!r}")
    return int(given)


def _surface(array: Any, name: str, program: Program, written: bool = False) -> Surface:
    words = arguments.texel_words(array, name, program, written)
    height, width, count = words.shape
    return Surface(width, height, 4 * count, words, array.dtype == np.float32)


def _output(array: Any, n: int, program: Program, domain: tuple[int, int, int]) -> Surface:
    surface = _surface(array, name := f"outputs[{n}]", program, written=True)
    size = f"{surface.height} x {surface.width}"
    wanted = f"{domain[1]} x {domain[0]}"
    if size != wanted:
        raise ArgumentError(f"{name} is {size}, the domain {wanted} (rows x columns)")
    return replace(surface, words=surface.words.copy())


def _global(array: Any, program: Program) -> np.ndarray:
    arguments.check_array(array, "global_memory", program, written=True)
    words = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
    if len(words) % 4:
        have = f"global_memory has {4 * len(words)} bytes"
        why = "since g[] has 128-bit elements"
        raise ArgumentError(f"{have}: a multiple of 16 is needed, {why}")
    return words.reshape(-1, 4).copy()
