"""Print the results that a redesign must not change, one per line, for ``diff``.

    python tools/oracle.py > before           # everything, a minute or two
    ... change the code ...
    python tools/oracle.py | diff before -
    python tools/oracle.py zoo host           # some parts

Parts:

- ``kernels``: for each catalog kernel, the counts of a run; hashes of the arrays that each engine
  and the VLIW code compute, and of the listing; and ``Report.row()`` at three sizes.
- ``zoo``: for each bug of the zoo, the text of the findings.
- ``verdicts``: for each planted answer to an exercise, the verdict.
- ``views``: for each picture, hashes of its captions, texts and frames.
- ``host``: for each plan of the host, its speed, and a hash of when its tasks begin and end.
"""

import argparse
import copy
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["CYPRESSKIT_KEEP"] = "0"

import cypresskit as ck  # noqa: E402
from cypresskit import host  # noqa: E402
from cypresskit.machine.launch import prepare  # noqa: E402
from tools.run_code import execute  # noqa: E402

M, N, K = 67, 45, 13  # not multiples of any block
Lines = Iterator[tuple[str, object]]


def plain(value: object) -> object:
    """Convert a value for JSON: numpy's numbers exactly, arrays to a hash, others to text."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return hashed(np.ascontiguousarray(value).tobytes())
    return str(value)


def hashed(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value, default=plain).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def kernels() -> Lines:
    for name, kernel in ck.kernels.items():
        columns = 1 if kernel.is_vector else N
        pair, count = (
            (2,) if kernel.precision == "double-double" else (),
            (3,) if kernel.convention.packed else (),
        )
        rng, shapes = (
            np.random.default_rng(1),
            [*kernel.convention.stored(M, columns, K), (M, columns)],
        )
        a, b, c = (
            rng.standard_normal(count + shape + pair).astype(kernel.dtype) for shape in shapes
        )
        given = kernel.arguments(a, b, c, 1.5, -0.5)
        for engine in ("interpreter", "compiled"):
            arguments = copy.deepcopy(given)
            yield (
                f"{name}, counts, {engine}",
                asdict(ck.launch(kernel.program, engine=engine, **arguments)),
            )
            written = [arguments.get("global_memory"), *arguments.get("outputs", {}).values()]
            yield f"{name}, bits, {engine}", written
        launch = prepare(kernel.program, **given)
        execute(ck.compile(kernel.program), launch)
        yield (
            f"{name}, bits, vliw",
            [launch.memory, *(surface.words for surface in launch.outputs.values())],
        )
        yield f"{name}, listing", hashed(ck.compile(kernel.program).listing())
        for n in (128, 512, 1024):
            yield f"{name}, time, {n}", ck.simulate(name, n).row()


def zoo() -> Lines:
    from test_checks import ZOO, checked, parts

    for path in ZOO:
        bug, near, at, there = parts(path)
        yield path.stem, [str(checked(bug, at)), str(checked(near, there))]


def verdicts() -> Lines:
    from answers import planted

    for check, (right, wrong) in planted().items():
        for kind, answers in {"right": right, "wrong": [answer for answer, _ in wrong]}.items():
            for n, answer in enumerate(answers):
                yield (
                    f"{check.__module__.split('.')[-1]} {check.__name__} {kind} {n}",
                    str(check(answer)),
                )


def views() -> Lines:
    from tools.gallery import VIEWS

    for name, (_, view) in VIEWS.items():
        picture = view()
        levels = {f"{name}, {level.name}": level.player for level in getattr(picture, "levels", ())}
        for title, player in (levels or {name: picture}).items():
            if not hasattr(player, "tracks"):  # an interactive figure
                yield title, hashed([repr(player), vars(player)])
                continue
            words = [
                player.title,
                repr(player),
                player.captions,
                player.scenes,
                list(player.about.items()),
            ]
            yield f"{title}, {len(player)} frames", hashed(words)
            for n, track in enumerate(player.tracks):
                yield f"{title}, {n} {track.source.name or ''} {track.column}", track.frames


def plans() -> Lines:
    """Yield the speed of each plan of the host, and a hash of its tasks' names, starts and ends."""
    machine, single, size = host.Machine(), host.Machine(ck.HD5870), (8192, 8192, 1536)
    timelines = {
        "five stages": host.five_stage(*size, machine),
        "four stages": host.four_stage(*size, machine),
        "with a CPU": host.five_stage(*size, machine, cpu_share=0.1),
        "blocked": host.blocked_timeline(5376, 5376, 3584, single, block=1792),
        "without overlap": host.blocked_timeline(
            5376, 5376, 3584, single, block=1792, overlap=False
        ),
    }
    timelines |= {
        f"call {n}, share {share!r}": plan
        for n, (share, plan) in enumerate(host.adapt_cpu_share(*size, machine))
    }
    for name, plan in timelines.items():
        yield (
            name,
            [plan.gflops, hashed([(span.task.name, span.start, span.end) for span in plan.spans])],
        )


PARTS = {"kernels": kernels, "zoo": zoo, "verdicts": verdicts, "views": views, "host": plans}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    chosen = parser.parse_args().parts
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"{', '.join(sorted(unknown))}: a part is one of {', '.join(PARTS)}")
    for part in chosen or PARTS:
        for thing, value in PARTS[part]():
            print(f"{part}: {thing}: {json.dumps(value, default=plain)}", flush=True)
