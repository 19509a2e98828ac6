"""Do all engines agree? The explaining one, the fast one on memory between guard pages, and the
compiled code of either style: the same bits, and on the first two the same counts.
"""

import copy
from collections.abc import Iterable

import numpy as np

import cypresskit as ck
from cypresskit.compiler import STYLES, CompileError, compile
from cypresskit.machine.launch import prepare
from cypresskit.machine.vliw import execute
from tools.fuzz.guards import FLUSH, guarded

STEPS = 3000  # instructions of a work-item


class Wrong(Exception):
    """The fuzzer has found a fault."""


def agree(
    program: ck.Program,
    launch: dict,
    *,
    defined: bool = True,
    flush: str | None = None,
    styles: Iterable[str] = STYLES,
    steps: int = STEPS,
) -> None:
    """Run a program on all engines; raise ``Wrong`` if they differ.

    Parameters
    ----------
    launch
        The arguments of ``ck.launch``; none of its arrays is changed.
    defined
        Whether its results are. Those of a race are not: then it need only run.
    flush
        The guard that arrays touch, "end" or "begin"; by default one that follows from the program.
    styles
        Those that it is compiled in. The compiler has to say why it refuses the program, or its
        code has to end as the program does, with the same bits.
    steps
        Instructions of a work-item after which a loop is taken for endless.
    """
    if flush is None:
        flush = FLUSH[len(program.body) % len(FLUSH)]
    ending, explained = _ran(program, launch, "explain", steps)
    with guarded(flush):
        fast_ending, fast = _ran(program, launch, "fast", steps)
    if not defined:
        return
    if ending != fast_ending:
        raise Wrong(f"the explaining engine ends with {ending}, the fast one with {fast_ending}")
    _compare(explained, fast, "fast")
    for style in styles:
        prepared = prepare(program, **copy.deepcopy(launch), max_instructions=steps)
        try:
            execute(compile(program, style=style), prepared)
        except CompileError as error:
            in_words(error)
            continue
        except ck.KernelError:  # it may give up later or sooner: it counts bundles
            continue
        if isinstance(ending, int):
            raise Wrong("the compiled code ends, the program does not")
        written = {f"o{n}": surface.words for n, surface in prepared.outputs.items()}
        _compare(explained, written | {"g": prepared.memory}, f"compiled as {style}")


def _ran(
    program: ck.Program, launch: dict, engine: str, steps: int
) -> tuple[list | int, dict[str, np.ndarray]]:
    """A launch's end (its counts, or the line of a fault) and the arrays that it leaves, as
    bits.
    """
    given = copy.deepcopy(launch)
    try:
        counts = ck.launch(program, **given, engine=engine, max_instructions=steps)
        ending: list | int = [*counts.executed.tolist(), counts.out_of_range]
    except ck.KernelError as error:
        ending = error.line
    arrays = {f"o{n}": array for n, array in given.get("outputs", {}).items()}
    if "global_memory" in given:
        arrays["g"] = given["global_memory"]
    return ending, {name: array.view(np.uint32) for name, array in arrays.items()}


def _compare(explained: dict, others: dict, how: str) -> None:
    for name, array in explained.items():
        other = others[name].reshape(array.shape)
        if len(different := np.argwhere(array != other)):
            place = tuple(different[0].tolist())
            raise Wrong(
                f"{name}{list(place)}: {array[place]:#x} explained, {other[place]:#x} {how}"
            )


def in_words(error: Exception) -> None:
    """Raise ``Wrong`` if an error has no text."""
    if not str(error):
        raise Wrong("an error without words") from error
