"""Compare all engines: the interpreter, the compiled engine, and the VLIW code.

All must give the same bits, and the first two the same counts. The compiled engine runs on memory
between guard pages, and the VLIW code must obey the rules of the chip.
"""

import copy

import numpy as np

import cypresskit as ck
from cypresskit.compiler import CompileError, compile
from cypresskit.machine.interpreter import Interpreter
from cypresskit.machine.launch import prepare
from tools import legality
from tools.fuzz.guards import FLUSH, guarded
from tools.run_code import execute

STEPS = 3000  # instructions of a work-item


class Wrong(Exception):
    """A fault that the fuzzer has found."""


def agree(
    program: ck.Program,
    launch: dict,
    *,
    defined: bool = True,
    flush: str | None = None,
    steps: int = STEPS,
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
    flush
        The guard that arrays touch, "end" or "begin"; by default one that the program determines.
    steps
        Instructions of a work-item after which a loop counts as infinite.

    Raises
    ------
    Wrong
        If the engines differ.
    """
    if flush is None:
        flush = FLUSH[len(program.body) % len(FLUSH)]
    ending, interpreted = _ran(program, launch, "interpreter", steps)
    with guarded(flush):
        compiled_ending, compiled = _ran(program, launch, "compiled", steps)
    if not defined:
        return
    if _name(ending) != _name(compiled_ending) and not _other_loop(
        program, launch, ending, compiled_ending, steps
    ):
        raise Wrong(
            f"the interpreter ends with {_name(ending)}, the compiled engine with"
            f" {_name(compiled_ending)}"
        )
    _compare(interpreted, compiled, "compiled")
    prepared = prepare(program, **copy.deepcopy(launch), max_instructions=steps)
    try:
        code = compile(program)
        if broken := legality.check(code):
            raise Wrong(f"compiled, it breaks a rule: {broken[0]}")
        execute(code, prepared)
    except CompileError as error:
        in_words(error)
        return
    except ck.KernelError:  # it may give up later or sooner: it counts bundles
        return
    if isinstance(ending, ck.KernelError):
        raise Wrong("the compiled code ends, the program does not")
    written = {f"o{n}": surface.words for n, surface in prepared.outputs.items()}
    _compare(interpreted, written | {"g": prepared.memory}, "VLIW")


Ending = list[int] | ck.KernelError  # of a launch: its counts, or its fault


def _ran(
    program: ck.Program, launch: dict, engine: str, steps: int
) -> tuple[Ending, dict[str, np.ndarray]]:
    """Return how a launch ended, and the bits of its arrays."""
    given = copy.deepcopy(launch)
    try:
        counts = ck.launch(program, **given, engine=engine, max_instructions=steps)
        ending: Ending = [*counts.executed.tolist(), counts.out_of_range]
    except ck.KernelError as error:
        ending = error
    arrays = {f"o{n}": array for n, array in given.get("outputs", {}).items()}
    if "global_memory" in given:
        arrays["g"] = given["global_memory"]
    return ending, {name: array.view(np.uint32) for name, array in arrays.items()}


def _name(ending: Ending) -> list[int] | int:
    """Return the counts, or the line of the fault."""
    return ending.line if isinstance(ending, ck.KernelError) else ending


def _other_loop(
    program: ck.Program, launch: dict, ending: Ending, compiled_ending: Ending, steps: int
) -> bool:
    """Return whether two engines that end with errors at different lines are both right.

    A launch may have several infinite loops, and the order of work-items determines the first one.
    In the interpreter, and in compiled code that runs in step, all work-items stop at the first
    loop that any of them reaches; otherwise the compiled engine finishes some work-items before it
    begins others.

    The work-item that the compiled engine names must then end in the same loop in the interpreter,
    if it runs alone. If there are fences, its workgroup runs; its work-items may be in different
    loops, which must be infinite, too.
    """
    for fault in (ending, compiled_ending):
        if not isinstance(fault, ck.KernelError) or fault.kind != "endless":
            return False
    assert isinstance(compiled_ending, ck.KernelError)
    prepared = prepare(program, **copy.deepcopy(launch), max_instructions=steps)
    places = [prepared.shape.place(item) for item in range(prepared.shape.items)]
    items = np.arange(prepared.shape.items)
    item = places.index(compiled_ending.work_item)
    fences = any(i.op.kind == "fence" for i in program.body)
    group = program.group if fences else 1
    interpreter = Interpreter(prepared, ())
    interpreter.masks.set(items // group == item // group)
    try:
        with np.errstate(all="ignore"):
            interpreter.run()
    except ck.KernelError as alone:
        return alone.kind == "endless" and (fences or alone.line == compiled_ending.line)
    return False


def _compare(interpreted: dict, others: dict, how: str) -> None:
    for name, array in interpreted.items():
        other = others[name].reshape(array.shape)
        if len(different := np.argwhere(array != other)):
            place = tuple(different[0].tolist())
            raise Wrong(
                f"{name}{list(place)}: {array[place]:#x} interpreted, {other[place]:#x} {how}"
            )


def in_words(error: Exception) -> None:
    """Raise ``Wrong`` if an error has no text."""
    if not str(error):
        raise Wrong("an error without words") from error
