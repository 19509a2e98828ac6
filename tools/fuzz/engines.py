"""Compare all engines: the interpreter, the compiled engine, and the VLIW code.

All must give the same bits, and the first two the same counts. The compiled engine runs on memory
between guard pages, and the VLIW code must obey the rules of the chip.
"""

import copy

import numpy as np

import cypresskit as ck
from cypresskit.compiler import CompileError, compile
from cypresskit.machine.launch import prepare
from tools import legality
from tools.fuzz.guards import FLUSH, guarded
from tools.run_code import execute

STEPS = 3000  # instructions of a work-item


class Wrong(Exception):
    """Engines differ, or code breaks a rule."""


def agree(
    program: ck.Program,
    launch: dict,
    *,
    defined: bool = True,
) -> None:
    """Run a program on all engines.

    The compiler must refuse the program with a reason, or compile it to code that ends in the same
    way with the same bits.

    Parameters
    ----------
    launch
        The arguments of ``ck.launch``. Its arrays aren't changed.
    defined
        Whether the results are defined. Those of a race aren't: then the program only has to run.

    Raises
    ------
    Wrong
        If the engines differ.
    """
    ending, interpreted = _ran(program, launch, "interpreter")
    with guarded(FLUSH[len(program.body) % len(FLUSH)]):
        compiled_ending, compiled = _ran(program, launch, "compiled")
    if not defined:
        return
    if _name(ending) != _name(compiled_ending):
        raise Wrong(
            f"the interpreter ends with {_name(ending)}, the compiled engine with"
            f" {_name(compiled_ending)}"
        )
    _compare(interpreted, compiled, "compiled")
    prepared = prepare(program, **copy.deepcopy(launch), max_instructions=STEPS)
    try:
        code = compile(program)
        if broken := legality.check(code):
            raise Wrong(f"compiled, it breaks a rule: {broken[0]}")
        execute(code, prepared)
    except CompileError as error:
        if not str(error):
            raise Wrong("an error without words") from error
        return
    except ck.KernelError:  # it may give up later or sooner: it counts bundles
        return
    if isinstance(ending, ck.KernelError):
        raise Wrong("the compiled code ends, the program does not")
    written = {f"o{n}": surface.words for n, surface in prepared.outputs.items()}
    _compare(interpreted, written | {"g": prepared.memory}, "VLIW")


Ending = list[int] | ck.KernelError  # of a launch: its counts, or its fault


def _ran(program: ck.Program, launch: dict, engine: str) -> tuple[Ending, dict[str, np.ndarray]]:
    """Return how a launch ended, and the bits of its arrays."""
    given = copy.deepcopy(launch)
    try:
        counts = ck.launch(program, **given, engine=engine, max_instructions=STEPS)
        ending: Ending = [*counts.executed.tolist(), counts.out_of_range]
    except ck.KernelError as error:
        ending = error
    arrays = {f"o{n}": array for n, array in given.get("outputs", {}).items()}
    if "global_memory" in given:
        arrays["g"] = given["global_memory"]
    return ending, {name: array.view(np.uint32) for name, array in arrays.items()}


def _name(ending: Ending) -> list[int] | int | str:
    """Return the counts, or the line of the fault. Of several infinite loops an engine may name
    any, since work-items reach them in another order.
    """
    if isinstance(ending, ck.KernelError):
        return "an infinite loop" if ending.kind == "endless" else ending.line
    return ending


def _compare(interpreted: dict, others: dict, how: str) -> None:
    for name, array in interpreted.items():
        other = others[name].reshape(array.shape)
        if len(different := np.argwhere(array != other)):
            place = tuple(different[0].tolist())
            raise Wrong(
                f"{name}{list(place)}: {array[place]:#x} interpreted, {other[place]:#x} {how}"
            )
