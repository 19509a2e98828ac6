"""Compiled code traced without data: its addresses, what it refuses, and that a counted loop is the
loop.
"""

import random
from dataclasses import replace
from itertools import combinations, groupby, product

import numpy as np
import pytest
from kernel_texts import TEXTURE
from products import size_of
from sampling import drawn_by_day, from_rows, seeded

from cypresskit.chip.work import ALU, BARRIER, KINDS
from cypresskit.compiler import compile
from cypresskit.devices import HD5870, WAVEFRONT
from cypresskit.il import assemble
from cypresskit.kernels import KERNELS
from cypresskit.machine import KernelError, launch
from cypresskit.machine.shape import Extent, LaunchShape
from cypresskit.timing import DataDependentError
from cypresskit.timing.timed_launch import TimedLaunch
from cypresskit.trace import infinite_loops, memory_layout, tracing
from cypresskit.trace.history import History
from cypresskit.trace.memory_layout import MemoryLayout
from cypresskit.trace.vliw import Processor
from tools.fuzz import law

HEAD = f"""
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
{TEXTURE.format(0)}
dcl_cb cb0[1]
dcl_literal l0, 1.0, 2.0, 4.0, 0.0
dcl_literal l1, 1, 2, 3, 0
"""

FETCH = "sample_resource(0)_sampler(0)"


def shapes(body, domain=(8, 8), width=64):
    program = assemble(f"il_ps_2_0{HEAD}{body}\nend\n", "test.il")
    cb0 = np.zeros((1, 4), np.uint32)
    return LaunchShape(program, (*domain, 1), {0: Extent(width, 64, 16)}, {0: cb0})


def paths(shape, code=None):
    code = code or compile(shape.program)
    return tracing.trace_wavefronts(code, MemoryLayout(shape, HD5870), np.arange(shape.wavefronts))


def streams(shape):
    """The streams of the only path's TEX clauses."""
    (path,) = paths(shape)
    return [
        s for body, _ in path.segments for c in body if KINDS[c.kind] == "TEX" for s in c.streams
    ]


def unroll(path):
    """Every clause of a path with the cost and sorted lines of each access and wavefront, whatever
    form it has.
    """
    result = []
    for body, times in path.segments:
        for n in range(times):
            for clause in body:
                accesses = []
                for s in clause.streams:
                    entries = np.arange(len(path.wavefronts)) * s.phases + n % s.phases
                    lines = [
                        np.sort(s.line[s.ptr[e] : s.ptr[e + 1]] + n // s.phases * s.step).tolist()
                        for e in entries
                    ]
                    accesses.append((s.cost[entries].tolist(), lines))
                result.append((clause.kind, clause.bundles, accesses))
    return result


def by_wavefront(found):
    """What each wavefront runs, clause by clause."""
    result = {}
    for path in found:
        iterations = unroll(path)
        for n, wavefront in enumerate(path.wavefronts):
            result[int(wavefront)] = [
                (kind, bundles, [(cost[n], lines[n]) for cost, lines in accesses])
                for kind, bundles, accesses in iterations
            ]
    return result


def check_that_joined_iterations_are_those_run_one_by_one(shape, monkeypatch):
    """What each wavefront runs is the same. Returns how many iterations were joined at most."""
    joined = paths(shape)
    monkeypatch.setattr(tracing, "can_join", lambda code, start: False)
    stepped = paths(shape)
    clauses = [
        sum(
            len(path.wavefronts) * len(body) * times
            for path in ran
            for body, times in path.segments
        )
        for ran in (joined, stepped)
    ]
    assert clauses[0] == clauses[1]  # else there may be too many to unroll
    assert by_wavefront(joined) == by_wavefront(stepped)
    assert all(times == 1 for path in stepped for _, times in path.segments)
    return max(times for path in joined for _, times in path.segments)


@pytest.mark.parametrize("name", ["sgemm_nn", "ddgemm_tn_fma", "sgemm_64x64_lds"])
def test_a_counted_loop_is_the_loop_iteration_by_iteration(name, monkeypatch):
    shape = KERNELS[name].shape(128, 64, 48, 1.0, 0.0, 1)
    assert check_that_joined_iterations_are_those_run_one_by_one(shape, monkeypatch) > 4


BETWEEN = """
ge r5.x, r0.x, {}
lt r5.y, r0.x, {}
iand r5.x, r5.x, r5.y
iand r5.x, r5.x, l0.z
add r4.x, r0.x, r5.x"""  # four texels further, in some iterations in the middle


@pytest.mark.parametrize("end", ["3.0", "17.0", "37.0"])
@pytest.mark.parametrize(
    "bend",
    [
        "min r4.x, r0.x, l2.y",
        "max r4.x, r0.x, l2.y",
        BETWEEN.format("l2.z", "l2.w"),
        BETWEEN.format("l3.x", "l3.y"),
        "sub r4.x, l0.w, r0.x",
    ],
)
def test_a_loop_whose_accesses_bend_is_what_it_is_one_by_one(bend, end, monkeypatch):
    """Up to a point in the loop they move by one texel an iteration, or from there on, or but for
    some, or leave the texture after the first.
    """
    shape = shapes(f"""
        dcl_literal l2, 40.0, {end}, 12.0, 24.0
        dcl_literal l3, 21.0, 33.0, 0, 0
        mov r0.x, l0.w
        whileloop
            ge r1.x, r0.x, l2.x
            break_logicalnz r1.x
            {bend}
            {FETCH} r2, r4.xx00
            add r3, r3, r2
            add r0.x, r0.x, l0.x
        endloop
        mov g[0], r3
    """)
    check_that_joined_iterations_are_those_run_one_by_one(shape, monkeypatch)


# Places that move by one, by three, backward, and not at all; as floats, and as integers
MOVING = ("r0.x", "r10.x"), ("r4.x", "r14.x"), ("r6.x", "r16.x"), ("r0.y", "r10.y")


@pytest.mark.parametrize("one, other", [*combinations(range(4), 2)])
@pytest.mark.parametrize("stores", [False, True])
def test_accesses_that_meet_in_some_iterations_are_what_they_are_one_by_one(
    stores, one, other, monkeypatch
):
    """A line that two fetches of a clause request, or two stores, moves once."""
    places = [MOVING[n][stores] for n in (one, other)]
    if stores:
        accesses = [f"mov g[{place}], r0" for place in places]
    else:
        accesses = [f"{FETCH} r2, {place}{place[-1]}00\nadd r9, r9, r2" for place in places]
    shape = shapes(f"""
        dcl_literal l2, 40.0, 3.0, 0.0, 0.0
        mov r0, l0.w
        mov r9, l0.w
        whileloop
            ge r1.x, r0.x, l2.x
            break_logicalnz r1.x
            mul r4.x, r0.x, l2.y
            sub r6.x, l2.x, r0.x
            ftoi r10, r0
            ftoi r14.x, r4.x
            ftoi r16.x, r6.x
            {accesses[0]}
            {accesses[1]}
            add r0.x, r0.x, l0.x
        endloop
        mov g[0], r9
    """)
    check_that_joined_iterations_are_those_run_one_by_one(shape, monkeypatch)


#: How the places in a loop follow one another, by their number.
ROTATIONS = {
    2: "ixor r12.x, r12.x, l2.z",
    3: "mov r13, r12\nmov r12.xyz, r13.yzx",
    4: "mov r13, r12\nmov r12, r13.yzwx",
}


@drawn_by_day(("places", "bits", "count"), product(ROTATIONS, [0, 1, 3], [1, 37, 64, 119]), 4)
def test_iterations_that_take_turns_are_joined_together(places, bits, count, monkeypatch):
    """As with several buffers in the LDS. Work-items leave early by some bits of their column."""
    shape = shapes(
        f"""
        dcl_literal l2, 1, {count}, 512, {bits}
        dcl_literal l3, 0, 512, 96, 40
        ftoi r11.x, vWinCoord0.x
        iand r11.x, r11.x, l2.w
        isub r11.x, l2.y, r11.x
        mov r10.x, l1.x
        mov r12, l3
        mov r3, l0.w
        whileloop
            ige r1.x, r10.x, r11.x
            break_logicalnz r1.x
            mov r2, g[r12.x]
            add r3, r3, r2
            {ROTATIONS[places]}
            iadd r10.x, r10.x, l2.x
        endloop
        mov g[2000], r3
        """,
        domain=(32, 16),
    )
    joined = check_that_joined_iterations_are_those_run_one_by_one(shape, monkeypatch)
    assert joined > count // places // 2 or count < 100


def test_data_of_some_lanes_are_no_address_of_others():
    body = f"""
        mov r0.xy, vWinCoord0.xy
        lt r1.x, vWinCoord0.x, l0.z
        if_logicalnz r1.x
            {FETCH} r0, r0.xy00
        endif
        if_logicalz r1.x
            {FETCH} r2, r0.xy00
        endif
        add r2, r2, r0
        mov g[0], r2
    """
    assert len(streams(shapes(body))) == 2
    with pytest.raises(DataDependentError, match=r"(?s)test\.il:11: .*the one in\ntest\.il:14: "):
        streams(shapes(body.replace("logicalz", "logicalnz")))


@from_rows
def test_rejects_data_dependent_addresses_and_branches(body, lines):
    with pytest.raises(DataDependentError) as error:
        streams(shapes("\n" + body))
    assert f"test.il:{lines[0]}:" in str(error.value)
    assert f"the one in\ntest.il:{lines[1]}:" in str(error.value)
    branches = "if_" in body or "break_" in body
    assert "can be run (`ck.launch`) and checked (`ck.check`), but not timed" in str(error.value)
    assert ("`cmov_logical`" in str(error.value)) == branches
    assert ("work-item's id" in str(error.value)) != branches


def test_fetches_outside_a_texture_touch_no_line():
    (fetch,) = streams(
        shapes("sample_resource(0)_sampler(0) r1, vWinCoord0.xy00\nmov g[0], r1", width=4)
    )
    assert int(fetch.ptr[-1]) == 8  # half the tile: a line for each row


class Divergent:
    """A random program whose branches and loops depend on the work-item's place."""

    def __init__(self, seed):
        self.rng, self.registers = random.Random(seed), 20
        start = ["flr r0.xy, vWinCoord0.xy", "mov r1, l0.wwww", "mov r9, l0.wwww"]
        self.body = "\n".join([*start, *self.block(0), "mov g[0], r9"])

    def compared(self):
        """A comparison, and where its result is."""
        self.registers += 1
        left = self.rng.choice(("r0.x", "r0.y", "r1.x", "r1.y"))
        right = self.rng.choice(("l0.y", "l0.z", "l2.x", "r0.y", "r0.x"))
        relation = self.rng.choice(("ge", "lt", "eq", "ne"))
        return [f"{relation} r{self.registers}.x, {left}, {right}"], f"r{self.registers}.x"

    def block(self, depth):
        lines = []
        for _ in range(self.rng.randrange(2, 5)):
            kind = self.rng.random()
            if depth < 3 and kind < 0.3:
                lines += self.branch(depth)
            elif depth < 2 and kind < 0.6:
                lines += self.loop(depth)
            else:
                lines += self.rng.choice(
                    (
                        [f"{FETCH} r8, r{self.rng.randrange(2)}.xy00", "add r9, r9, r8"],
                        ["add r1.x, r1.x, l0.x"],
                        ["mad r1.y, r0.x, l0.y, r1.x"],
                        ["mul r9, r9, r9"],
                    )
                )
        return lines

    def branch(self, depth):
        test, result = self.compared()
        other = ["else", *self.block(depth + 1)] if self.rng.random() < 0.4 else []
        return [*test, f"if_logicalnz {result}", *self.block(depth + 1), *other, "endif"]

    def loop(self, depth):
        counter, most = f"r{10 + depth}.x", self.rng.choice(("r0.x", "r0.y", "l2.x", "r1.x"))
        leave, result = self.compared() if self.rng.random() < 0.3 else ([], "")
        test = f"r{15 + depth}.x"
        return [
            f"mov {counter}, l0.w",
            "whileloop",
            *(f"ge {test}, {counter}, {most}", f"break_logicalnz {test}"),
            *(f"ge {test}, {counter}, l2.y", f"break_logicalnz {test}"),
            f"add {counter}, {counter}, {self.rng.choice(('l0.x', 'l0.y'))}",
            *leave,
            *([f"break_logicalnz {result}"] if leave else []),
            *self.block(depth + 1),
            "endloop",
        ]


def test_rejects_a_trace_that_needs_too_much_memory():
    shape = KERNELS["sgemm_tn"].shape(65536, 65536, 64, 1.0, 0.0, 1)
    large = replace(HD5870, memory_bytes=1 << 40)
    memory_layout, code = MemoryLayout(shape, large), compile(shape.program)
    with pytest.raises(
        ValueError, match=r"sgemm_tn.* 1,048,576 wavefronts would .* memory: take a sm"
    ):
        tracing.trace_wavefronts(code, memory_layout, np.arange(shape.wavefronts))
    assert tracing.trace_wavefronts(code, memory_layout, np.arange(4000))


@seeded(3)
def test_wavefronts_traced_together_run_what_each_runs_alone(seed):
    shape = shapes("dcl_literal l2, 7.0, 30.0, 0.0, 0.0\n" + Divergent(seed).body, (24, 16))
    code, memory_layout = compile(shape.program), MemoryLayout(shape, HD5870)

    def run_by(numbers):
        return by_wavefront(tracing.trace_wavefronts(code, memory_layout, numbers))

    together = run_by(np.arange(shape.wavefronts))
    for n in range(shape.wavefronts):
        assert run_by(np.array([n]))[n] == together[n]


def events_of_code(code, control):
    """The LDS accesses and barriers of a control-flow instruction, bundle by bundle."""
    found = []
    for bundle in code.controls[control].bundles:
        for operation, *_ in bundle.parts:
            if operation.row.kind == "sync":
                found.append("barrier")
            elif operation.row.kind == "lds":
                found.append(operation.at)
    return found


def events_of_trace(clauses):
    """The LDS accesses and barriers of clauses."""
    return [at for c in clauses for at in (["barrier"] if c.kind == BARRIER else c.sources)]


def check_barriers(shape):
    """Check that the clauses of a launch have its LDS accesses on the code's side of each barrier,
    and all bundles once. Returns how many clauses have accesses before a barrier.
    """
    code, between = compile(shape.program), 0
    for body in (body for path in paths(shape, code=code) for body, _ in path.segments):
        for control, pieces in groupby(body, lambda clause: clause.control):
            pieces = list(pieces)
            if pieces[0].kind not in (ALU, BARRIER):
                continue
            expected = events_of_code(code, control)
            if shape.group_wavefronts == 1:
                expected = [event for event in expected if event != "barrier"]
            assert events_of_trace(pieces) == expected
            alu = [piece for piece in pieces if piece.kind == ALU]
            assert min(piece.bundles for piece in alu) > 0
            assert sum(piece.bundles for piece in alu) == len(code.controls[control].bundles)
            assert all(len(piece.streams) == len(piece.sources) for piece in alu)
            between += "barrier" in expected and expected[0] != "barrier"
    return between


@seeded(1)
def test_lds_accesses_stay_on_their_side_of_a_barrier(seed):
    between, rng = 0, random.Random(seed)
    for _ in range(12):
        between += check_barriers(law.groups(rng)) + check_barriers(law.accesses(rng))
    assert between


@seeded(6)
def test_loops_counted_at_once_are_those_run_iteration_by_iteration(seed, monkeypatch):
    shape = shapes("dcl_literal l2, 7.0, 30.0, 0.0, 0.0\n" + Divergent(seed).body, (24, 16))
    check_that_joined_iterations_are_those_run_one_by_one(shape, monkeypatch)


def break_loops(seed):
    """A program of loops, of which a break or a step is broken at random, for all or for some."""
    rng = random.Random(seed)
    lines = Divergent(seed).body.splitlines()
    lines = [*lines[:3], "lt r19.x, r0.x, l2.x", *Divergent(seed).loop(0), *lines[3:]]
    breaks = [n for n, line in enumerate(lines) if "break" in line]
    for n in rng.sample(breaks, rng.choice((max(1, len(breaks) // 2), len(breaks)))):
        lines[n] = f"break_logicalnz {rng.choice(('l0.w', 'r0.w', 'r19.x'))}"
    if rng.random() < 0.5:
        steps = [n for n, line in enumerate(lines) if line.startswith("add r10.x")]
        lines[rng.choice(steps)] = "sub r10.x, r10.x, l0.x"
    head = "mov r0.zw, l0.ww\ndcl_literal l2, 7.0, 30.0, 0.0, 0.0\n"
    return head + "\n".join(lines)


@pytest.fixture
def traced(monkeypatch):
    """The processors of the traces that follow, and their histories."""
    processors, histories = [], []
    monkeypatch.setattr(
        tracing, "Processor", lambda *args: processors.append(Processor(*args)) or processors[-1]
    )
    monkeypatch.setattr(
        tracing, "History", lambda count: histories.append(History(count)) or histories[-1]
    )
    return processors, histories


def check_that_little_was_run(traced):
    """Of a loop that never ends: whatever a trace of two million instructions would take."""
    processors, histories = traced
    assert sum(processor.bundles for processor in processors) < 300_000
    clauses = [clause for entry in histories[-1].entries for clause in entry.clauses]
    assert sum(s.line.nbytes for clause in clauses for s in clause.streams) < 100_000


def errors(run):
    """What a run is ended by, if it is."""
    try:
        run()
    except KernelError as error:
        return [error]
    return []


@seeded(6)
def test_reports_the_endless_loops_of_a_launch(seed, traced):
    shape = shapes(break_loops(seed), (16, 8))
    texture, memory = np.zeros((64, 64, 4), np.float32), np.zeros((1, 4), np.float32)
    given = {"inputs": {0: texture}, "global_memory": memory, "constants": shape.constants}
    launched = errors(lambda: launch(shape.program, shape.domain[:2], **given))
    found = errors(lambda: paths(shape))
    assert [error.kind for error in launched] == ["endless"] * len(found)
    loops = [shape.program.body[error.at] for error in found]
    assert [(each.opcode, each.line) for each in loops] == [("whileloop", e.line) for e in found]
    check_that_little_was_run(traced)


def test_endless_loops_are_looked_for_among_the_lanes_that_are_left(monkeypatch):
    shape, ran = shapes(break_loops(0), (512, 512)), []
    monkeypatch.setattr(infinite_loops, "run", lambda launch: ran.append(launch.shape.items))
    infinite_loops.infinite_loop(shape, np.arange(3), np.arange(3 * WAVEFRONT) >= WAVEFRONT)
    assert ran == [2 * WAVEFRONT]


@seeded(2)
def test_streams_made_in_parts_are_those_made_at_once(seed, monkeypatch):
    """To the byte, whatever is accessed, and wherever a part ends."""
    rng = random.Random(seed)
    kernel = KERNELS[rng.choice(sorted(KERNELS))]
    m, n, k = (64 * rng.randint(1, 3) + rng.randint(0, 40) for _ in "mnk")
    timed = TimedLaunch(kernel, size=size_of(kernel, m, n, k))

    def made(at_once):
        monkeypatch.setattr(memory_layout, "MAX_ENTRIES", at_once)
        paths = timed.trace(timed.wavefronts)
        clauses = [clause for path in paths for body, _ in path.segments for clause in body]
        made_streams = [s for clause in clauses for s in clause.streams]
        parts = ("amounts", "ptr", "line", "offset")
        return [getattr(s, part).tobytes() for s in made_streams for part in parts]

    assert made(rng.randint(1, 9)) == made(1 << 20)
