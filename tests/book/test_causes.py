"""Every causal sentence of a lesson has an experiment: a run without that cause alone.

Causal are the sentences with one of ``WORDS``, those that explain a number by a number ("so",
"thus", a colon: ``explains_a_number``), and all questions that begin with "Why", with their
answers. For each of them ``causes.toml`` has an entry, whose ``says`` is a part of it, of one of
four kinds:

- ``with``, ``without``, ``base``: an experiment. Three expressions: the size of the effect, its
  size if the cause alone is removed, and where there is no effect. At least three fifths must go.
- ``counted``: an expression that is true. The cause follows by counting or arithmetic.
- ``defined``: who defines or documents it.
- ``guess``: a cause that can't be removed alone. The lesson says so, by one of ``GUESSES``, in the
  same paragraph.
"""

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from answers.l12 import loop_tested_last
from answers.l14 import RUN, made
from conftest import ROOT, by_day
from faults import count_correct_share

import cypresskit as ck
from cypresskit.chip.units.lds_banks import access_clocks
from cypresskit.compiler import compile
from cypresskit.editing.steps import reference_kernel
from cypresskit.host.rates import kernel_rate
from cypresskit.kernels.convention import BYTES
from cypresskit.kernels.samples import record_traffic
from cypresskit.teach.l02_why_blocks.checks import simulate_block
from cypresskit.teach.l05_texture_cache import checks as texture_cache
from cypresskit.teach.l06_double_double import checks as double_double
from cypresskit.teach.l14_build_the_clock import checks as clock
from cypresskit.teach.l14_build_the_clock.choose import Clock, Scattered
from cypresskit.today import figures
from tools import book

WORDS = re.compile(
    r"\bbecause\b|\bdue to\b|\bthanks to\b|\bowing to\b|\bthe reasons? (?:is|was|for|why|that)\b"
    r"|\bcaused?\b(?! of)"
    r"|\b(?:that|this|which) is why\b|\bsince\b(?! \d{4}| then|:)",
    re.IGNORECASE,
)
#: What leads from a number to the one that it explains.
LEADS = re.compile(
    r"\b(?:so|thus|therefore|hence|consequently)\b"
    r"(?! (?:much|many|far|that|few|long|called|as|on)\b)"
    r"|(?<=[\w)*`$%]):(?= )",
    re.IGNORECASE,
)
DIGITS = re.compile(r"(?<![\w`.\[])\d(?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)")
COUNTED = re.compile(
    rf"{DIGITS.pattern}|\b(?:half|third|quarter|fifth|twice|double|one|two|three|four|five|six|seven|eight"
    r"|nine|ten|eleven|twelve|sixteen|twenty)\b",
    re.IGNORECASE,
)
#: Colons that introduce: a heading's, a table's, a question's, a source's.
INTRODUCES = re.compile(r"^(?:#|\||\*\*Predict|- \*[\d.]+\*:)|\(measured: \[")
GUESSES = re.compile(r"(?i)\b(?:guess|assum|infer|perhaps|suspect|may be|might be|probabl)")
TABLE = tomllib.loads((ROOT / "tests/causes.toml").read_text(encoding="utf-8"))
SOURCES = book.sources(ROOT / "notebooks")
REMAINS = 0.4  # the share of an effect that may be left without its cause
NOTICED = 0.01  # an effect is at least this share of the size
KINDS = {"without", "counted", "defined", "guess"}
each_lesson = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)


def claims(text: str) -> Iterator[tuple[str, str]]:
    """Yield each causal sentence of a lesson's Markdown, with its paragraph."""
    for question, answer in book.WHY.findall(text):
        pair = " ".join(f"{question} {answer}".split())
        yield pair, pair
    plain = re.sub(r"(?s)```.*?```", "", book.WHY.sub("", text))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|] ?|\d+\. ))", plain):
        paragraph = " ".join(block.split())
        before = ""
        for sentence in re.split(r"(?<=[.?!])[*)]*\s+(?=[*(`$\"A-Z])", paragraph):
            if re.search(r"\b[Ww]hy\b[^.]*\?", sentence):
                yield paragraph, paragraph
            elif WORDS.search(sentence) or explains_a_number(sentence, before):
                yield sentence, paragraph
            before = sentence


def explains_a_number(sentence: str, before: str) -> bool:
    """Whether a sentence leads from a number, in it or in the sentence ``before``, to another."""
    if INTRODUCES.search(sentence):
        return False
    for lead in LEADS.finditer(sentence):
        start = sentence[: lead.start()]
        given = start if start.strip(" *(") else before
        counted = DIGITS if lead[0] == ":" else COUNTED
        if counted.search(given) and counted.search(sentence[lead.end() :]):
            return True
    return False


def unexplained(text: str, entries: list[dict]) -> list[str]:
    """Return the causal sentences that have no entry, or several."""
    found = [sentence for sentence, _ in claims(text)]
    return [s for s in found if sum(entry["says"] in s for entry in entries) != 1]


def prose(path) -> str:
    """A lesson's prose, with its questions for grades."""
    cells = book.read(path).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


# -- what the table's expressions name


@cache
def _gflops(name: str, changes: tuple, size: tuple) -> float:
    return ck.simulate(name, **dict(size), device=replace(ck.HD5870, **dict(changes))).gflops


def gflops(name: str, n: int = 0, m: int = 0, k: int = 0, beta=0.0, count=1, **changes) -> float:
    """The modeled speed of a kernel on a board with these changes."""
    sides = {word: side for word, side in {"n": n, "m": m, "k": k}.items() if side}
    size = sides | {"beta": beta, "count": count}
    return _gflops(name, tuple(changes.items()), tuple(size.items()))


@cache
def by_llvm() -> dict[str, float]:
    """The speed of each row of lesson 03's table of LLVM's code."""
    return {name: speed for name, *_, speed in ck.teach.bundles.llvm_table().values}


def shuffled(mads: list[str]) -> list[str]:
    """The order in the solution of lesson 03."""
    random.Random(14).shuffle(mads)
    return mads


def own(kernel: str, overhead=7.0, pause=40.0, memory=320.0, wavefronts=0, scatter=0.0) -> float:
    """Gflop/s of a kernel by lesson 14's clock."""
    right = Clock(clock.right_steps, clock.right_rows)
    return right.speed(kernel, overhead, pause, memory, wavefronts, scatter)


def ratio(percent: float, seed: int = 14) -> float:
    """How many times as fast ten wavefronts of a loop are as six, by lesson 14's clock, if data are
    early or late at random by up to so many percent.
    """

    def run(steps, *launch):
        return clock.right_rows(Scattered(steps, percent, seed), *launch)

    scattered = Clock(clock.right_steps, run)
    return scattered.speed("sgemm_tn") / scattered.speed("sgemm_tn_37")


def thirteen_over_ten(*numbers: float) -> float:
    """The clocks of 13 wavefronts of sgemm_tn on ten slots, over those of ten."""
    steps = clock.right_steps(clock.clauses("sgemm_tn"), *numbers)
    return clock.last_clock(clock.right_rows(steps, 13, 512, 10)) / clock.last_clock(
        clock.right_rows(steps, 10, 512)
    )


def last_clock_by_hand(places: str) -> float:
    """When the wavefronts of the first section end, if the ALU has these places."""
    return clock.last_clock(made(RUN, "[0, 0]", places)(clock.BY_HAND, 2, 2))


def serves_later_ones_first() -> float:
    """The clocks of ten wavefronts if the one that has done the least comes first, over those if
    the one comes first that is ready earliest.
    """
    least = "now, w, n = min(ready, key=lambda r: (r[2], r[0])); ready.remove((now, w, n))"
    run = made(RUN, "now, w, n = heappop(ready)", least)
    steps = clock.right_steps(clock.clauses("sgemm_tn"), *clock.USUAL)
    return clock.last_clock(run(steps, 10, 50)) / clock.last_clock(made(RUN)(steps, 10, 50))


def waits_for_memory(kernel: str) -> float:
    """The share of TEX clauses that wait for a line from memory: for longer than L2 takes."""
    report = ck.simulate(kernel, m=3840, n=1280, k=512)
    flights = [event.end - event.served for event in report.timeline if event.kind == "TEX"]
    return float(np.mean(np.array(flights) > 1.2 * ck.HD5870.l2_clocks))


def skewed(x, y):
    """A rule of banks by which no quad of TN or NN waits."""
    return (x + y // 4) % 4


def diagonal(x, y):
    """A rule of banks by which texels above each other are in different banks."""
    return (x + y) % 4


@cache
def fetch_clocks(name: str, resource: int, rule=None) -> int:
    """The texture unit's clocks for the first fetch of a matrix, 16 quads."""
    banks = rule or (lambda x, y: x % 4)
    fetch = next(f for f in record_traffic(name, k=16).accesses if f.resource == resource)
    quads = np.stack([fetch.x, fetch.y], axis=-1).reshape(16, 4, 2).tolist()
    return sum(_busiest({tuple(texel) for texel in quad}, banks) for quad in quads)


def _busiest(texels, banks) -> int:
    held = [banks(x % 16, y % 16) for x, y in texels]
    return max(map(held.count, held))


def bundles(name: str) -> int:
    """The bundles of an iteration."""
    kernel = reference_kernel(name) if name.startswith("block_") else ck.kernels[name]
    return sum(len(control.bundles) for control in compile(kernel.program).main_loop)


@cache
def pipeline(
    stages: str, k: int, kernel="dgemm_tn", chips=2, share=0.0, bus=1.0, pads=True
) -> float:
    """Gflop/s of a pipeline of lesson 11."""
    host = replace(ck.host.Machine().host, dma_gb_s=6.0 * bus, pcie_gb_s=8.0 * max(bus, 1))
    machine = ck.host.Machine(ck.HD5970, host, chips, pads)
    make = getattr(ck.host, stages)
    return make(16384, 16384, k, machine, kernel=kernel, cpu_share=share).gflops


def transfers(n, bus=3.0, kernel=450.0) -> float:
    """Gflop/s with transfers, by lesson 09's model."""
    return ck.host.rate_with_transfers(n, bus * 1e9, kernel * 1e9) / 1e9


def saved_without_c(n: int) -> float:
    """The share of a product's time that is saved if the old C isn't sent, by lesson 09's model."""
    bus, kernel = ck.host.transfer_seconds(n, 3e9), ck.host.kernel_seconds(n, 450e9)
    return bus / 4 / (bus + kernel)


def largest_block(strips: int) -> int:
    """The largest block of a gigabyte that holds so many strips and three blocks, by lesson 10."""
    blocks = range(128, 8192, 128)
    return max(b for b in blocks if 8 * (strips * 16384 * b + 3 * b * b) <= ck.HD5870.memory_bytes)


@cache
def blocked(block: int, **changes: float) -> float:
    """Gflop/s of lesson 10's product, with a host that is changed."""
    machine = ck.host.Machine(ck.HD5870, replace(ck.host.Machine().host, **changes))
    return ck.host.blocked_timeline(7168, 7168, 7168, machine, block=block).gflops


@cache
def adapted() -> float:
    """Gflop/s after the CPU's share was adapted to what was measured."""
    calls = ck.host.adapt_cpu_share(16384, 16384, 2048, ck.host.Machine(ck.HD5970), calls=3)
    return [timeline.gflops for _, timeline in calls][-1]


def blocks_make_the_product() -> bool:
    """Whether each block of C is a strip of A times a strip of B."""
    a, b = np.random.default_rng(10).integers(-9, 10, (2, 8, 8))
    parts = [[a[i : i + 4] @ b[:, j : j + 4] for j in (0, 4)] for i in (0, 4)]
    return np.array_equal(np.block(parts), a @ b)


def sums_are_exact() -> bool:
    """Whether Knuth's two-sum finds all that is lost."""
    rng = random.Random(6)
    pairs = [(rng.gauss(0, 1), rng.gauss(0, 1) * 2.0 ** rng.randint(-60, 60)) for _ in range(999)]
    losses = [(a, b, a + b, (a - (a + b - (a + b - a))) + (b - (a + b - a))) for a, b in pairs]
    return all(Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b) for a, b, s, e in losses)


def products_are_exact() -> bool:
    """Whether what a product loses fits into a double."""
    a, b = np.random.default_rng(6).standard_normal((2, 999))
    lost = [Fraction(x) * Fraction(y) - Fraction(x * y) for x, y in zip(a.tolist(), b.tolist())]
    return all(Fraction(float(loss)) == loss for loss in lost)


def shorter_sums_are_more_accurate() -> bool:
    """Whether four partial sums of random floats have a smaller mean error than one sum."""
    rows = np.random.default_rng(8).standard_normal((200, 2048)).astype(np.float32)
    exact = rows.astype(float).sum(axis=1)
    whole = np.abs(np.cumsum(rows, axis=1)[:, -1] - exact).mean()
    parts = np.cumsum(rows.reshape(200, 512, 4), axis=1)[:, -1].sum(axis=1)
    return bool(np.abs(parts - exact).mean() < 0.7 * whole)


def lds_clocks_of(words, rule=()) -> int:
    """The LDS's clocks for sixteen requests at once."""
    board = replace(ck.HD5870, lds_bank=rule)
    requested = np.zeros((1, 1, 64), np.int64)
    requested[0, 0, :16] = list(words)[:16]
    return int(access_clocks(4 * requested, board, np.arange(64)[np.newaxis] < 16)[0])


def lds_clocks(name: str, rule=()) -> int:
    """The LDS's clocks of an iteration, by a rule of banks."""
    board = replace(ck.HD5870, lds_bank=rule)
    found = [a for a in record_traffic(name, k=4).accesses if a.addresses is not None]
    requests = [(a.addresses[np.newaxis], a.active[np.newaxis]) for a in found]
    return sum(int(access_clocks(addresses, board, active)[0]) for addresses, active in requests)


def without_fence(name: str) -> ck.Kernel:
    """A kernel of the catalog without its barriers."""
    text = ck.kernels[name].text.replace("fence_threads_lds\n", "\n")
    return ck.load_kernel(text, like=name, name="unfenced")


def fetches(name: str, resource: int) -> list:
    """The recorded fetches of a matrix by a wavefront."""
    return [f for f in record_traffic(name, k=16).accesses if f.resource == resource]


def registers(name: str) -> int:
    """The registers of a kernel, as compiled."""
    return compile(ck.kernels[name].program).gprs


def busy(name: str, **size: int) -> dict[str, float]:
    """The share of the time in which each unit works."""
    return ck.simulate(name, **size).busy


def block(size: int, **changes: int) -> float:
    """Gflop/s of lesson 02's plain kernel with a square block, on a board with these changes."""
    return simulate_block(size, 2048, replace(ck.HD5870, **changes)).gflops


def unrolled(steps: int, n: int, side: int = 8, **changes) -> float:
    """Gflop/s of lesson 12's kernel with this many values of k per iteration."""
    kernel = ck.teach.contest.generate_kernel(side, side, steps)
    return _gflops(kernel, tuple(changes.items()), (("n", n),))


def last_over_first(**changes) -> float:
    """How many times as fast lesson 12's block of 12 x 8 is with the test at its loop's end."""
    kernels = loop_tested_last(12, 8, 3), ck.teach.contest.generate_kernel(12, 8, 3)
    last, first = (_gflops(kernel, tuple(changes.items()), (("n", 2048),)) for kernel in kernels)
    return last / first


def small_bundles(*lines: str) -> int:
    """The bundles of these lines of IL."""
    return len(ck.teach.bundles.bundle_table({"": lines}).rows)


def row_by_row() -> int:
    """The bundles of an iteration of lesson 03's loop before its multiply-adds are sorted."""
    kernel = ck.compile(ck.assemble(ck.teach.starter_text("03"), "03.il"))
    return sum(len(control.bundles) for control in kernel.main_loop)


def share_correct(first: str) -> float:
    """The share of C that lesson 02's whole kernel computes correctly with this first line."""
    kernel = reference_kernel("four_outputs_tn")
    text = kernel.text.replace("add r0.xy, vWinCoord0.yx, l0.x", first)
    return float(count_correct_share(replace(kernel, text=text)))


def texel_words(name: str) -> int:
    """The numbers of a matrix that a fetch brings."""
    return (
        statistics(name).fetch_bytes // statistics(name).fetches // BYTES[_kernel(name).precision]
    )


def fetches_of(name: str) -> int:
    """The fetches of an iteration."""
    return statistics(name).fetches


def statistics(name: str):
    """The kernel statistics of a kernel of the catalog or of a lesson."""
    return ck.kernel_stats(_kernel(name))


def _kernel(name: str) -> ck.Kernel:
    return reference_kernel(name)


@cache
def products_cost_more(**changes) -> float:
    """By how much a line of products costs more than a fetch in lesson 03, as a share of all."""
    report = ck.simulate("sgemm_tn", 1280, device=replace(ck.HD5870, **changes))
    costs = {line.work.line: line.cost for line in ck.line_costs(report).lines}
    text = dict(enumerate(ck.kernels["sgemm_tn"].text.splitlines(), 1))
    product = next(n for n in costs if "mad r10, r2.x, r4, r10" in text[n])
    fetch = next(n for n in costs if "sample_resource(0)" in text[n])
    return costs[product] - costs[fetch]


def busiest(pitch: int, threads: int) -> int:
    """The words of the busiest of 32 banks, for threads that are ``pitch`` words apart."""
    banks = [pitch * thread % 32 for thread in range(threads)]
    return max(map(banks.count, banks))


def alu_clauses(name: str) -> int:
    """The ALU clauses of an iteration."""
    return sum(bool(control.bundles) for control in compile(_kernel(name).program).main_loop)


def barriers(name: str) -> int:
    """The barriers in a kernel's source."""
    return ck.kernels[name].text.count("fence_threads")


def words_per_product(name: str) -> float:
    """The words that a whole kernel of lessons 02 and 12 fetches per product."""
    kernel = reference_kernel(name)
    names = [i.op.name for i in kernel.program.body]
    fetches = sum(name.startswith("sample") for name in names)
    return 4 * fetches / (4 * names.count("mad"))


#: What expressions name beside the functions above: many rounds of a kernel in single precision and
#: in double.
KNOWN = {
    "ck": ck,
    "kernel_rate": kernel_rate,
    "texture_cache": texture_cache,
    "double_double": double_double,
    "clock": clock,
    "figures": figures,
    "ROUNDS": {"m": 3840, "n": 1024, "k": 128},
    "FULL": {"n": 1280, "k": 256},
    "LONG": {"m": 3840, "n": 1024, "k": 1024},
    "FULL_ROUNDS": {"m": 2560, "n": 3520, "k": 2048},  # ten of 220 wavefronts, eleven of 200
    "NEAR": {"l1_clocks": 4, "l2_clocks": 4, "dram_clocks": 4},  # next to no latency
    "ELEVEN": {"register_pool": 26 * 11},  # room for eleven wavefronts with two values of k
} | {name: value for name, value in globals().items() if callable(value)}


@each_lesson
def test_every_causal_sentence_has_an_entry(path):
    entries = TABLE.get(path.stem[:2], [])
    missing = unexplained(prose(path), entries)
    assert not missing, "tests/causes.toml: remove that cause alone, or call it a guess"
    whole = [sentence for sentence, _ in claims(prose(path))]
    lost = [e["says"] for e in entries if not any(e["says"] in sentence for sentence in whole)]
    assert not lost, "tests/causes.toml has sentences that the lesson lost"


ENTRIES = [(lesson, entry) for lesson, entries in TABLE.items() for entry in entries]
named = [f"{lesson}-{entry['says'][:40]}" for lesson, entry in ENTRIES]


@pytest.mark.parametrize(("lesson", "entry"), by_day(ENTRIES, 6), ids=named)
def test_without_its_cause_the_effect_goes(lesson, entry):
    (kind,) = KINDS & entry.keys()
    if kind == "without":
        effect, without, base = (
            float(eval(entry[word], dict(KNOWN))) for word in ("with", "without", "base")
        )
        assert abs(effect - base) > NOTICED * max(abs(effect), abs(base)), (effect, base)
        left = (without - base) / (effect - base)
        assert left <= REMAINS, f"{left:.0%} of the effect are left: {effect}, {without}, {base}"
    elif kind == "counted":
        assert eval(entry[kind], dict(KNOWN)) is True, entry[kind]
    elif kind == "guess":
        path = next(p for p in SOURCES if p.name.startswith(lesson))
        (paragraph,) = [p for s, p in claims(prose(path)) if entry["says"] in s]
        assert GUESSES.search(paragraph), "the lesson has to say that it is a guess"
    assert len(entry[kind]) > 3


@pytest.mark.parametrize(
    "sentence",
    [
        "It is slow because the cache is small.",
        "Since L1 is small, it is slow.",
        "The reason is the bus.",
        "It is slow, due to the banks.",
        "That is why it is slow.",
        "1. Why is it slow?",
        "- It waits, since nothing is there.",
        "| NN | slow, because of its quads |",
        "<!-- why: Why is it slow? It waits for data. -->",
        "The loss is caused by bank conflicts.",
        "It has 8 fetches, so it takes 128 clocks.",
        "It has 8 fetches of 16 clocks. So it takes 128.",
        "With 37 registers it is slower: 6 wavefronts, 1428 Gflop/s.",
        "- An engine has 256 registers; thus ten wavefronts fit.",
        "Half of it is lost, and therefore the speed is 45.",
    ],
)
def test_a_new_causal_sentence_is_noticed(sentence):
    text = f"# A lesson\n\nIt runs.\n\n{sentence}\n\nNVIDIA has done so since 2006.\n"
    assert len(unexplained(text, [])) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "## Exercise 1: 4 x 4",
        "| 8 fetches | 128 clocks: 16 each |",
        "**Predict first:** how many of 8 remain?",
        "It takes 19 times as long (measured: [lesson 13](13.ipynb)).",
        "It has 8 fetches, and so many of 64 work-items wait.",
        "Its words are in banks 0, 1, 2 and so on, up to 31.",
        "Write `r0: 4`, then `l1: 5`.",
    ],
)
def test_what_introduces_is_no_cause(sentence):
    assert unexplained(f"# A lesson\n\nIt runs.\n\n{sentence}\n", []) == []
