"""Lesson 07: clocks of a loop's turn unit by unit, and the checks of the exercises on the local data share."""

from collections.abc import Callable

import numpy as np

from cypresskit.compiler import compile
from cypresskit.devices import HD5870
from cypresskit.draw.runs import listened
from cypresskit.il import ILError, assemble
from cypresskit.kernels import KERNELS
from cypresskit.machine import KernelError, launch
from cypresskit.machine.checks import check
from cypresskit.machine.traffic import Access, Traffic
from cypresskit.teach.verdict import Verdict, said, stopped
from cypresskit.timing.lds import access_clocks

WORDS = 320  # of LDS that exercise 2's layout may take
BEST = 8  # LDS clocks of exercise 3: a store and a load without conflicts


def clocks_of_turn(name: str) -> dict[str, int]:
    """Clocks that a turn of a catalogue kernel's main loop keeps each unit busy for one wavefront: "ALU" as compiled,
    "texture" and "LDS" as asked for in a recorded run, without what other wavefronts cost."""
    code = compile(KERNELS[name].program)
    clauses = [c.clause for c in code.main_loop if c.clause is not None]
    traffic = listened(name, k=16)  # a row of A is a line
    first = next(n for n, access in enumerate(traffic.accesses) if access.kind == "fetch")
    starts = [n for n, access in enumerate(traffic.accesses) if access.at == traffic.accesses[first].at]
    turn = traffic.accesses[starts[0] : starts[1]]
    widths = {n: surface.width for n, surface in traffic.launch.textures.items()}
    return {
        "ALU": HD5870.bundle_clocks * sum(len(clause.bundles) for clause in clauses),
        "texture": sum(_lines(access, widths[access.resource]) for access in turn if access.kind == "fetch"),
        "LDS": lds_clocks(turn),
    }


def lds_clocks(accesses: list[Access]) -> int:
    """Clocks of the LDS accesses among these."""
    asked = [(a.addresses[np.newaxis], a.active[np.newaxis]) for a in accesses if a.addresses is not None]
    return sum(int(access_clocks(addresses, HD5870, active)[0]) for addresses, active in asked)


def _lines(access: Access, width: int) -> int:
    assert access.x is not None and access.y is not None
    lines = np.sort(((access.y * width + access.x) // 4).reshape(16, 4), axis=1)
    return int((1 + (np.diff(lines) != 0).sum(axis=1)).sum())


def transpose(matrix: np.ndarray, text: str) -> tuple[np.ndarray, int]:
    """Run exercise 3's kernel on an 8 x 8 matrix: its result and the clocks of its LDS accesses."""
    program, traffic = assemble(text, "transpose.il"), Traffic()
    result = np.zeros((8, 32), np.float32)
    launch(program, **_launched(matrix), global_memory=result, observers=[traffic], max_instructions=10**5)
    return result[:, ::4], lds_clocks(traffic.accesses)


def _launched(matrix: np.ndarray) -> dict:
    return {"domain": 64, "inputs": {0: np.repeat(matrix[:, :, np.newaxis], 4, axis=2).astype(np.float32)}}


def check_bank_clocks(clocks: Callable) -> Verdict:
    """Exercise 1: ``clocks(words)`` is how many clocks 32 banks need to give 16 work-items the words they ask for."""
    cases = {
        "neighbours": list(range(16)),
        "all the same word": [5] * 16,
        "every second word": list(range(0, 32, 2)),
        "every fourth word": list(range(0, 64, 4)),
        "every 32nd word": list(range(0, 512, 32)),
        "every 33rd word": list(range(0, 528, 33)),
        "two words, in one bank": [3, 35] * 8,
        "a crowd and a few": [0, 32, 64, *[7] * 10, 8, 9, 10],
    }
    for name, words in cases.items():
        banks: dict[int, set[int]] = {}
        for word in words:
            banks.setdefault(word % 32, set()).add(word)
        want = max(len(asked) for asked in banks.values())
        try:
            got = clocks(list(words))
            right = bool(got == want)
        except Exception as error:
            return stopped("clocks", error, f"it was called with a list of 16 word numbers ({name}).")
        if right:
            continue
        hint = "for each bank, how many different words are asked of it? The busiest bank decides."
        if got == max([w % 32 for w in words].count(bank) for bank in banks):
            hint = "who asks for the same word is served at once: a bank counts different words."
        elif got in (len(banks), len(set(words))):
            hint = "banks work at the same time: count neither all banks nor all words, but those of the busiest bank."
        elif got == sum(len(asked) - 1 for asked in banks.values()) + 1:
            hint = "banks don't wait for each other: take the busiest one, not the sum."
        return Verdict(False, f"For {name}, {words}, it gives {got}; right is {want}.", hint)
    return Verdict(True, "Right for eight patterns, from one clock to sixteen.")


def check_place(place: Callable) -> Verdict:
    """Exercise 2: ``place(row)`` is the word of the LDS where a row of the 64 x 4 tile begins, so that neither storing
    rows nor loading those of the own block meets a bank conflict."""
    try:
        first = np.array([int(place(row)) for row in range(64)])
        whole = all(float(place(row)) == first[row] for row in range(64))
    except Exception as error:
        return stopped("place", error, "it is called with rows 0 to 63 and should give a whole number.")
    if not whole:
        return Verdict(False, "place gives parts of a word.", "words are counted in whole numbers: // instead of /.")
    words = first[:, np.newaxis] + np.arange(4)
    if words.min() < 0 or words.max() >= WORDS:
        finding = f"The tile takes words {words.min()} to {words.max()}; there are {WORDS}, from 0."
        return Verdict(False, finding, "a few words of padding for each 8 rows are enough.")
    if len(np.unique(words)) < words.size:
        other = next((a, b) for a in range(64) for b in range(a) if abs(first[a] - first[b]) < 4)
        finding = f"Rows {other[1]} and {other[0]} overlap in the LDS."
        return Verdict(False, finding, "a row has four words, so the next one begins at least four words on.")
    store, items = 4 * words.T, np.arange(64)
    loads = [4 * words[items // 8 * 8 + j].T for j in range(8)]
    clocks = [int(access_clocks(a[np.newaxis], HD5870)[0]) for a in (store, *loads)]
    finding = f"Storing takes {clocks[0]} clocks and the eight loads {sum(clocks[1:])}"
    if sum(clocks) > 72:
        least = "8 and 64 are possible"
        hint = (
            "in a clock, 16 work-items load from two rows that lie 8 apart. In which banks do rows r and r + 8 begin?"
        )
        if clocks[0] > 8 and sum(clocks[1:]) == 64:
            hint = "the loads are fine. A store takes two words of 16 rows at a time: where do rows 8 to 15 fit in?"
        return Verdict(False, f"{finding}; {least}.", hint)
    return Verdict(True, f"{finding}: no conflicts, with {words.max() + 1 - 256} words of padding.")


def check_transpose(text: object) -> Verdict:
    """Exercise 3: IL in which 64 work-items transpose an 8 x 8 matrix through the LDS: right, without races and without
    bank conflicts."""
    if not isinstance(text, str):
        return Verdict(False, f"The kernel is a {type(text).__name__}, not text.", "pass the IL between quotes.")
    rng = np.random.default_rng(32)
    matrix = rng.permutation(64).reshape(8, 8).astype(np.float32) + 1
    try:
        result, clocks = transpose(matrix, text)
        program = assemble(text, "transpose.il")
        findings = check(
            program, **_launched(matrix), global_memory=np.zeros((8, 32), np.float32), max_instructions=10**5
        )
    except ILError as error:
        return Verdict(False, f"The kernel does not assemble.\n{error}", "the line above the caret.")
    except (KernelError, ValueError) as error:
        return Verdict(
            False, f"The kernel does not run: {said(error)}", "the LDS has 512 bytes, addresses count bytes."
        )
    races = [f for f in findings if f.kind == "race"]
    if not np.array_equal(result, matrix.T):
        row, column = (int(n) for n in np.argwhere(result != matrix.T)[0])
        finding = f"Element ({row}, {column}) of the result is {result[row, column]:g}, not {matrix[column, row]:g}."
        hint = "work-item (row, column) needs what work-item (column, row) has stored, and bytes are four times words."
        if np.array_equal(result, matrix):
            hint = "nothing was exchanged: load from another place than the one you stored to."
        elif not result.any():
            hint = "nothing arrives in r4.x: store r3.x, let everybody finish, load."
        return Verdict(False, finding, hint)
    if races:
        return Verdict(False, f"The result is right, by luck. {races[0].message}.", races[0].advice)
    if clocks > BEST:
        finding = f"The result is right, but store and load take {clocks} clocks of the LDS; {BEST} are possible."
        hint = "with 8 words a row, a column's words lie in only four banks. How many words should lie between rows?"
        return Verdict(False, finding, hint)
    return Verdict(True, f"Transposed, without a race, in {clocks} clocks of the LDS.")
