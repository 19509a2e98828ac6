"""What one could do to make a kernel faster: from what binds its launch, by what the report and the
code say, to the lines where that stands.

A step says a fact about this launch, with its figures, and what follows from it; it writes no code.
Each rule is a function of the facts, and gives a step or None where it doesn't apply; which rules
are asked, and in which order, depends on what binds. Left out: what only another order of the
compiler would gain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from cypresskit.kernels import Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.tables import quantity
from cypresskit.timing.account import LineWork
from cypresskit.timing.report import Report

MOST = 4  # steps that are said
LARGE = 32  # bytes of a block's row or column: a larger block gains little
DEARER = 1.4  # times the clocks of the cheapest access of its kind: worth a word
SPARSE = 3.5  # operations in a bundle, on average, below which slots are worth filling
ADVISED_WAIT = 0.05  # of the lives of wavefronts: a wait that a step is about
TEXEL = 16  # bytes of a whole one
PART = 0.08  # of the bundles: worth a word
MOST_LINES = 8  # that a step is about
ROWS = 0.15  # of the time in which memory opens rows: worth a word
#: What a quad is, by a program's mode.
QUADS = {"pixel": "2 x 2 neighbours", "compute": "four numbers in a row"}


@dataclass(frozen=True)
class NextStep:
    """What one could do, in words, and the lines that it is about."""

    text: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class Facts:
    """What the rules ask of a launch: its ``report``, and its ``kernel``."""

    report: Report
    kernel: Kernel

    @cached_property
    def works(self) -> dict[int, LineWork]:
        """The work of each line that is written; of a macro's call, of its first instruction."""
        works: dict[int, LineWork] = {}
        for work in self.report.lines:
            works.setdefault(work.calls[0] if work.calls else work.line, work)
        return works

    @property
    def bundles(self) -> list:
        """The bundles of the main loop."""
        return [b for control in self.report.launch.code.main_loop for b in control.bundles]

    @property
    def fetches(self) -> list[int]:
        """The lines of the main loop that fetch."""
        loop = self.report.launch.code.main_loop
        return sorted({fetch.line for control in loop for fetch in control.fetches})

    @property
    def number_bytes(self) -> int:
        """Bytes of a number of A, B or C."""
        return BYTES[self.kernel.precision]

    def clocks(self, unit: str) -> dict[int, float]:
        """The clocks that a unit works for a line each time that a wavefront runs it."""
        return {
            line: work.clocks[unit] / work.runs
            for line, work in self.works.items()
            if work.runs and work.clocks[unit]
        }

    @property
    def waits(self) -> dict[int, float]:
        """For which share of their lives wavefronts wait at each line that fetches."""
        lived = max(self.report.lived, 1.0)
        fetches = (work for work in self.works.values() if work.clocks["texture"])
        return {work.line: work.waited / lived for work in fetches}


def next_steps(report: Report, kernel: Kernel) -> list[NextStep]:
    """What one could do to make a launch of a kernel faster, the most promising first."""
    facts = Facts(report, kernel)
    steps = (rule(facts) for rule in bottleneck(report.bound).rules)
    return [step for step in steps if step is not None][:MOST]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


# -- rules


def _narrow_texels(facts: Facts) -> NextStep | None:
    kernel = facts.kernel
    if not kernel.convention.streams or kernel.convention.texel >= TEXEL:
        return None
    numbers = kernel.convention.texel // facts.number_bytes
    whole = TEXEL // facts.number_bytes
    stores = [i.line for i in kernel.program.body if i.dest and i.dest.register.kind == "o"]
    if written := dropped_components(kernel):
        return NextStep(
            f"{', '.join(written)} are written, and the work-item still computes"
            f" {kernel.block[0]} x {kernel.block[1]} of C: each must be a sum of its own, with a"
            " number of another column of B.",
            tuple(stores),
        )
    return NextStep(
        f"A fetch brings {quantity(numbers, 'number')}, and could bring {whole}: where all of o0"
        f" is stored, {whole} neighbours in a row of C, the texels of A and B hold {whole}, too.",
        tuple(stores),
    )


def dropped_components(mine: Kernel) -> list[str]:
    """The components of output streams that a kernel writes, and that no texel of C holds."""
    room = mine.convention.texel // 4
    written = {i.dest for i in mine.program.body if i.dest and i.dest.register.kind == "o"}
    lost = {
        (dest.register.index, component)
        for dest in written
        for component in dest.written
        if component >= room
    }
    return [f"o{number}.{'xyzw'[component]}" for number, component in sorted(lost)]


def _small_block(facts: Facts) -> NextStep | None:
    kernel = facts.kernel
    if kernel.vector or not facts.fetches:
        return None
    rows, columns = kernel.block
    if min(rows, columns) * facts.number_bytes >= LARGE:
        return None
    way = (
        "o1, o2 and so on take more rows of C"
        if kernel.convention.streams
        else "g[] takes more rows of C"
    )
    return NextStep(
        f"Each number of A is multiplied {_times(columns)}, each of B {_times(rows)}: in a larger"
        f" block of C for a work-item, more often ({way}).",
        tuple(facts.fetches),
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _conflicts(unit: str, access: str, advice: str) -> Callable[[Facts], NextStep | None]:
    """A rule: some accesses of a unit take longer than others."""

    def rule(facts: Facts) -> NextStep | None:
        if facts.kernel.convention.buffer:
            return None
        clocks = facts.clocks(unit)
        least = min(clocks.values(), default=0.0)
        dear = [line for line in clocks if clocks[line] > DEARER * least]
        if not dear:
            return None
        most = max(clocks.values())
        words = advice.format(quad=QUADS[facts.report.launch.code.program.mode])
        return NextStep(
            f"{access} here takes {most:.3g} clocks, elsewhere {least:.3g}: {words}", _few(dear)
        )

    return rule


def _few(lines: list[int]) -> tuple[int, ...]:
    return tuple(sorted(lines)[:MOST_LINES])


def _beside_the_sums(facts: Facts) -> NextStep | None:
    bundles = facts.bundles
    without = [
        b for b in bundles if not any("MULADD" in o.name or "FMA" in o.name for o in b.operations)
    ]
    if facts.kernel.precision == "double-double":
        return None  # without multiply-adds it computes all the same
    if not bundles or not PART <= len(without) / len(bundles) < 1:
        return None
    lines = sorted({o.line for bundle in without for o in bundle.operations})
    return NextStep(
        f"{len(without)} of {len(bundles)} bundles in the loop hold no multiply-add: done once for"
        " more steps of k in a turn (unrolled), such work weighs less.",
        _few(lines),
    )


def _empty_slots(facts: Facts) -> NextStep | None:
    filled = [len(bundle.operations) for bundle in facts.bundles]
    mean = sum(filled) / max(len(filled), 1)
    if not filled or mean >= SPARSE:
        return None
    sparse = {o.line for b in facts.bundles if len(b.operations) < SPARSE for o in b.operations}
    return NextStep(
        f"Of 5 slots {mean:.1f} do something, on average: what doesn't wait for each other, such as"
        " four components at once, fills them.",
        _few([*sparse]),
    )


def _waits_for_data(facts: Facts) -> NextStep | None:
    waits = facts.waits
    line = max(waits, key=lambda n: waits[n], default=0)
    if not line or waits[line] < ADVISED_WAIT:
        return None
    return NextStep(
        f"{_percent(waits[line])} of its life a wavefront waits here, for all fetches since the"
        " last arithmetic: more fetches at a time, in a longer turn, wait only once.",
        (line,),
    )


def _idle_engines(facts: Facts) -> NextStep | None:
    report = facts.report
    engines = report.device.simd_engines
    room = engines * report.active
    if report.wavefronts >= room:
        return None
    state = f"{quantity(report.wavefronts, 'wavefront')} for {engines} SIMD engines"
    if report.wavefronts < engines:
        state += f": {engines - report.wavefronts} stand idle"
    else:
        state += f", which hold {room:,}"
    return NextStep(
        f"{state}. Less of C for a work-item, or several that share the steps of k, make more; so"
        " does a larger N."
    )


def _room_for_one_more(facts: Facts) -> NextStep | None:
    launch, report = facts.report.launch, facts.report
    fewer = range(report.registers - 1, 0, -1)
    enough = next((r for r in fewer if launch.active_with(r) > report.active), None)
    if enough is None or report.wavefronts <= launch.round:
        return None
    more = launch.active_with(enough)
    if _turns_of_engine(report, more) > _turns_of_engine(report, report.active):
        return None  # a last round with many empty places takes more than it gives
    return NextStep(
        f"{report.registers} registers leave room for {report.active} wavefronts, {enough} would"
        f" for {more}: others compute while one waits. The column `live` says where most are"
        " needed."
    )


def _turns_of_engine(report: Report, active: int) -> int:
    """For how many wavefronts an engine takes the time if ``active`` share it: those of all rounds,
    of which the last one takes as long as if it were full.
    """
    rounds = -(-report.wavefronts // (active * report.device.simd_engines))
    return rounds * active


def _heaviest(facts: Facts) -> list[int]:
    """The lines that move most of the bytes from memory."""
    moved = {line: work.bytes["DRAM"] for line, work in facts.works.items()}
    most = max(moved.values(), default=0.0)
    return [line for line in moved if most and moved[line] >= most / 2]


def _rows_of_memory(facts: Facts) -> NextStep | None:
    rows = facts.report.busy.get("DRAM rows", 0.0)
    if rows < ROWS:
        return None
    return NextStep(
        f"{_percent(rows)} of the time memory opens rows instead of sending. Work-items that run at"
        " a time should read on where others have begun.",
        _few(_heaviest(facts)),
    )


def _read_again(facts: Facts) -> NextStep | None:
    size = facts.report.size
    if size is None:
        return None
    m, n, k = size
    least = (m * k + k * n) * facts.number_bytes
    times = facts.report.bytes["DRAM"] / least
    if times < 1.5:
        return None
    return NextStep(
        f"Memory gives {facts.report.bytes['DRAM'] / 1e6:,.0f} MB, and A and B have"
        f" {least / 1e6:,.0f}: each is read {times:.1f} times. Less often in larger"
        " blocks, and where neighbours run at a time.",
        _few(_heaviest(facts)),
    )


TEXTURE_CONFLICTS = _conflicts(
    "texture",
    "A fetch",
    "the four work-items of a quad, {quad}, want words of one bank. Best they want the same texel,"
    " or neighbours in a row.",
)
LDS_CONFLICTS = _conflicts(
    "LDS",
    "An access",
    "work-items want words of one bank. Rows of another length in the LDS spread them.",
)
Rule = Callable[[Facts], NextStep | None]
FEWER_FETCHES: tuple[Rule, ...] = (_narrow_texels, _small_block, TEXTURE_CONFLICTS)
MEMORY: tuple[Rule, ...] = (_rows_of_memory, _read_again, *FEWER_FETCHES)


class Bottleneck(NamedTuple):
    """What binds, as ``Report.bound`` begins; what would help, in a sentence; and the rules that
    are asked for steps.
    """

    bound: str
    help: str
    rules: tuple[Rule, ...]


#: The first that a bound begins with counts.
BOTTLENECKS = (
    Bottleneck(
        "ALU",
        "Fewer bundles a turn would help: fuller ones, or less work beside the multiply-adds.",
        (_beside_the_sums, _empty_slots),
    ),
    Bottleneck(
        "texture",
        "Fewer fetches for each multiply-add would help.",
        (*FEWER_FETCHES, _room_for_one_more, _beside_the_sums),
    ),
    Bottleneck(
        "LDS",
        "Fewer accesses to LDS would help, or fewer to one bank at once.",
        (LDS_CONFLICTS, _small_block),
    ),
    Bottleneck("L2", "Fetching less often what lies farther than L1 would help.", MEMORY),
    Bottleneck("DRAM rows", "Reading on in the rows of memory that are open would help.", MEMORY),
    Bottleneck("DRAM", "Fetching fewer bytes from memory would help.", MEMORY),
    Bottleneck(
        "latency",
        "More wavefronts would help if they fill the last round; or longer clauses to wait behind.",
        (_room_for_one_more, _waits_for_data, *FEWER_FETCHES),
    ),
    Bottleneck(
        "too few wavefronts",
        "More of them would fill the chip, or more that each does at a time.",
        (_idle_engines, _rows_of_memory, _waits_for_data),
    ),
    Bottleneck(
        "tail",
        "A larger N would make less of the last round.",
        (_idle_engines, _waits_for_data, *FEWER_FETCHES),
    ),
)


def bottleneck(bound: str) -> Bottleneck:
    """What helps a launch that is bound so, in the words of ``Report.bound``."""
    return next(known for known in BOTTLENECKS if bound.startswith(known.bound))
