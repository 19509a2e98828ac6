"""Write down what a redesign must leave as it is, byte for byte, or compare with what was written down before.

    python tools/oracle.py before.json              # everything, a minute or two
    ... change the code ...
    python tools/oracle.py after.json --compare before.json
    python tools/oracle.py - --parts zoo,host --compare before.json

For each kernel of the catalogue: the counts of a run, a hash of the arrays that it leaves on each engine and as VLIW
code, a hash of the listing in each style, and ``Report.row()`` at three sizes (``kernels``). For each bug of the zoo,
the findings' texts (``zoo``); for each planted answer to an exercise, the verdict (``verdicts``); for each view, its
captions, texts and frames (``views``); for plans of the host, when each task begins and ends (``host``). What is there
on one side only differs.
"""

import argparse
import copy
import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import cypresskit as ck  # noqa: E402
from cypresskit import host  # noqa: E402
from cypresskit.machine.launch import prepare  # noqa: E402
from cypresskit.machine.vliw import execute  # noqa: E402

M, N, K = 67, 45, 13  # of the runs: no multiple of any block


def hashed(*parts: np.ndarray | str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]


def written(arguments: dict) -> list[np.ndarray]:
    """The arrays that a launch has changed."""
    memory = arguments.get("global_memory")
    return ([] if memory is None else [memory]) + [out for _, out in sorted(arguments.get("outputs", {}).items())]


def kernels() -> dict[str, dict]:
    rows = {}
    for name, kernel in ck.kernels.items():
        shapes = [*kernel.stored(M, 1 if kernel.vector else N, K), (M, 1 if kernel.vector else N)]
        pair, count = (2,) if kernel.precision == "double-double" else (), (3,) if kernel.packed else ()
        rng = np.random.default_rng(1)
        a, b, c = (rng.standard_normal(count + shape + pair).astype(kernel.dtype) for shape in shapes)
        given = {how: copy.deepcopy(kernel.arguments(a, b, c, 1.5, -0.5)) for how in ("explain", "fast", "vliw")}
        runs = {how: asdict(ck.launch(kernel.program, engine=how, **given[how])) for how in ("explain", "fast")}
        counts = [run | {"engine": "", "executed": hashed(run["executed"])} for run in runs.values()]
        launch = prepare(kernel.program, **given["vliw"])
        execute(ck.compile(kernel.program), launch)
        outputs = {n: surface.words for n, surface in launch.outputs.items()}
        given["vliw"] = {"global_memory": launch.global_memory, "outputs": outputs}
        bits = {how: hashed(*written(arguments)) for how, arguments in given.items()}
        row = {"run": counts[0] | {"engine": "explain"}, "same counts": counts[0] == counts[1], "bits": bits}
        row |= {f"listing {s}": hashed(ck.compile(kernel.program, style=s).listing()) for s in ("amd", "best")}
        rows[name] = row | {"time": {str(n): ck.simulate(name, n).row() for n in (128, 512, 1024)}}
        print(f"\r{name:30}", end="\r", file=sys.stderr)
    return rows


def zoo() -> dict[str, str]:
    from test_checks import ZOO, checked, parts

    cases = {path.stem: parts(path) for path in ZOO}
    return {n: f"{checked(bug, at)}\n----\n{checked(near, there)}" for n, (bug, near, at, there) in cases.items()}


def verdicts() -> dict[str, str]:
    from answers import planted

    texts = {}
    for check, (right, wrong) in planted().items():
        answers = [("right", answer) for answer in right] + [("wrong", answer) for answer, _ in wrong]
        for n, (kind, answer) in enumerate(answers):
            texts[f"{check.__module__.split('.')[-1]} {check.__name__} {n} {kind}"] = str(check(answer))
    return texts


def views() -> dict[str, dict]:
    from tools.gallery import VIEWS

    shown = {}
    for name, (_, view) in VIEWS.items():
        picture = view()
        levels = {f"{name}, {level.name}": level.player for level in getattr(picture, "levels", ())}
        for title, player in (levels or {name: picture}).items():
            if not hasattr(player, "tracks"):  # a toy
                shown[title] = {"words": hashed(json.dumps([repr(player), vars(player)], default=plain))}
                continue
            words = [player.title, repr(player), player.captions, player.scenes, list(player.about.items())]
            columns = {f"{n} {t.source.name or ''} {t.column}": hashed(t.frames) for n, t in enumerate(player.tracks)}
            shown[title] = {"words": hashed(json.dumps(words, default=plain)), "frames": len(player)} | columns
    return shown


def plans() -> dict[str, list]:
    """For each plan of the host, of every kind, its end, and a hash of every task's name, start and end."""
    machine, single, size = host.Machine(), host.Machine(ck.HD5870), (8192, 8192, 1536)
    timelines = {
        "five stages": host.five_stage(*size, machine),
        "four stages": host.four_stage(*size, machine),
        "with a CPU": host.five_stage(*size, machine, cpu_share=0.1),
        "blocked": host.blocked_time(5376, 5376, 3584, single, block=1792),
        "one at a time": host.blocked_time(5376, 5376, 3584, single, block=1792, overlap=False),
    }
    timelines |= {f"call {n}, share {share!r}": plan for n, (share, plan) in enumerate(host.adaptive(*size, machine))}
    spans = {name: [(span.task.name, span.start, span.end) for span in plan.spans] for name, plan in timelines.items()}
    return {name: [plan.seconds, plan.gflops, hashed(json.dumps(spans[name]))] for name, plan in timelines.items()}


def plain(value):
    """numpy's numbers as exact JSON."""
    if isinstance(value, np.generic):
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def differences(before, after, place: str = "") -> list[str]:
    """The differences between two records; an entry in only one of them is a difference."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*before, *(key for key in after if key not in before)]
        return [line for key in keys for line in differences(before.get(key), after.get(key), f"{place}/{key}")]
    return [] if before == after else [f"{place}: {before!r} -> {after!r}"]


PARTS = {"kernels": kernels, "zoo": zoo, "verdicts": verdicts, "views": views, "host": plans}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="the JSON file to write; - writes none")
    parser.add_argument("--parts", help=f"of {', '.join(PARTS)}", default=",".join(PARTS))
    parser.add_argument("--compare", metavar="FILE", help="tell what differs from this one, and fail if anything does")
    asked = parser.parse_args()
    parts = asked.parts.split(",")
    after = json.loads(json.dumps({part: PARTS[part]() for part in parts}, default=plain))
    if asked.out != "-":
        Path(asked.out).write_text(json.dumps(after, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if not asked.compare:
        return 0
    before = json.loads(Path(asked.compare).read_text(encoding="utf-8"))
    differing = differences({part: before.get(part) for part in parts}, after)
    print("\n".join(differing) or "equal")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
