"""Write down what a redesign must leave as it is, byte for byte, or compare with what was written down before.

    python tools/oracle.py before.json              # everything, a minute or two
    ... change the code ...
    python tools/oracle.py after.json --compare before.json
    python tools/oracle.py - --only sgemm_tn,dgemm_nn --parts listing,time --compare before.json

For each kernel of the catalogue: the counts of a run (``run``), a hash of the arrays that it leaves on each engine, the
explaining one, the compiled one and the one that runs VLIW code (``bits``), a hash of the listing in each style
(``listing``), and ``Report.row()`` at three sizes (``time``). For each bug of the zoo, the findings' texts (``zoo``);
for each planted answer to an exercise, the verdict (``verdicts``); for each view, its captions, texts and frames
(``views``); for plans of the host, when each task begins and ends (``host``). What is there on one side only differs.
"""

import argparse
import copy
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import cypresskit as ck  # noqa: E402
from cypresskit import host  # noqa: E402
from cypresskit.machine.launch import prepare  # noqa: E402
from cypresskit.machine.vliw import execute  # noqa: E402

WHOLE = ("zoo", "verdicts", "views", "host")  # what belongs to no kernel
PARTS = ("run", "bits", "listing", "time", *WHOLE)
SIZES = (128, 512, 1024)
SMALL = (67, 45, 13)  # m, n, k of the runs: no multiple of any block


def hashed(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def matrices(kernel) -> list[np.ndarray]:
    m, n, k = SMALL[0], 1 if kernel.vector else SMALL[1], SMALL[2]
    shapes = [*kernel.stored(m, n, k), (m, n)]
    pair = (2,) if kernel.precision == "double-double" else ()
    rng = np.random.default_rng(1)
    return [rng.standard_normal(((3,) if kernel.packed else ()) + s + pair).astype(kernel.dtype) for s in shapes]


def results(arguments: dict) -> list[np.ndarray]:
    memory = arguments.get("global_memory")
    return ([] if memory is None else [memory]) + [out for _, out in sorted(arguments.get("outputs", {}).items())]


def run_kernel(kernel, parts: set[str]) -> dict:
    """Counts of a run, and a hash of what each engine leaves."""
    a, b, c = matrices(kernel)
    arguments = kernel.arguments(a, b, c, 1.5, -0.5)
    told = {}
    explained, fast, vliw = (copy.deepcopy(arguments) for _ in range(3))
    run = ck.launch(kernel.program, engine="explain", **explained)
    counts = asdict(run)
    counts["executed"] = hashed(run.executed)
    if "run" in parts:
        told["run"] = counts
    if "bits" in parts:
        compiled = asdict(ck.launch(kernel.program, engine="fast", **fast))
        compiled["executed"] = hashed(compiled["executed"])
        told["same counts"] = {k: v for k, v in compiled.items() if k != "engine"} == {
            k: v for k, v in counts.items() if k != "engine"
        }
        launch = prepare(kernel.program, **vliw)
        execute(ck.compile(kernel.program), launch)
        left = [] if launch.global_memory is None or not launch.global_memory.size else [launch.global_memory]
        left += [surface.words for _, surface in sorted(launch.outputs.items())]
        told["bits"] = {
            "explain": hashed(*results(explained)),
            "fast": hashed(*results(fast)),
            "vliw": hashed(*left),
        }
    return told


def zoo() -> dict[str, str]:
    from test_checks import ZOO, checked, parts

    found = {}
    for path in ZOO:
        bug, near, launch, near_launch = parts(path)
        found[path.stem] = f"{checked(bug, launch)}\n----\n{checked(near, near_launch)}"
    return found


def verdicts() -> dict[str, str]:
    """What each check says to each planted answer."""
    from answers import planted

    said = {}
    for check, (right, wrong) in planted().items():
        answers = [("right", answer) for answer in right] + [("wrong", answer) for answer, _ in wrong]
        for n, (kind, answer) in enumerate(answers):
            said[f"{check.__module__.split('.')[-1]} {check.__name__} {n} {kind}"] = str(check(answer))
    return said


def views() -> dict[str, dict]:
    """What each view of the gallery says, and a hash of each column that its frames change."""
    from cypresskit.draw.toy import Toy
    from tools.gallery import VIEWS

    shown = {}
    for name, (_, view) in VIEWS.items():
        made = view()
        if isinstance(made, Toy):
            text = json.dumps([repr(made), made.data], default=plain)
            shown[name] = {"words": hashed(np.frombuffer(text.encode(), np.uint8))}
            continue
        players = (
            {f"{name}, {level.name}": level.player for level in made.levels} if "levels" in vars(made) else {name: made}
        )
        for title, player in players.items():
            words = [player.title, repr(player), player.captions, player.scenes, list(player.about.items())]
            row = {"words": hashed(np.frombuffer(json.dumps(words, default=plain).encode(), np.uint8))}
            for n, track in enumerate(player.tracks):
                row[f"{n} {track.source.name or ''} {track.column}"] = hashed(track.frames)
            shown[title] = row | {"frames": len(player)}
    return shown


def timelines() -> Iterator[tuple[str, host.Timeline]]:
    """Plans of the host of every kind."""
    machine, single = host.Machine(), host.Machine(ck.HD5870)
    yield "five stages", host.five_stage(8192, 8192, 1536, machine)
    yield "four stages", host.four_stage(8192, 8192, 1536, machine)
    yield "with a CPU", host.five_stage(8192, 8192, 1536, machine, cpu_share=0.1)
    yield "blocked", host.blocked_time(5376, 5376, 3584, single, block=1792)
    yield "one at a time", host.blocked_time(5376, 5376, 3584, single, block=1792, overlap=False)
    for n, (share, timeline) in enumerate(host.adaptive(8192, 8192, 1536, machine)):
        yield f"call {n}, share {share!r}", timeline


def plans() -> dict[str, list]:
    """For each plan, its end and a hash of every task's name, beginning and end."""
    told = {}
    for name, timeline in timelines():
        spans = json.dumps([(span.task.name, span.start, span.end) for span in timeline.spans])
        told[name] = [timeline.seconds, timeline.gflops, hashed(np.frombuffer(spans.encode(), np.uint8))]
    return told


def plain(value):
    """Numbers of numpy as JSON has them, exactly."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)


def write(only: list[str], parts: set[str]) -> dict:
    told: dict = {}
    for name in only:
        kernel, row = ck.kernels[name], {}
        if parts & {"run", "bits"}:
            row |= run_kernel(kernel, parts)
        if "listing" in parts:
            for style in ("amd", "best"):
                text = ck.compile(kernel.program, style=style).listing()
                row[f"listing {style}"] = hashlib.sha256(text.encode()).hexdigest()[:16]
        if "time" in parts:
            row["time"] = {str(n): ck.simulate(name, n).row() for n in SIZES}
        told[name] = row
        print(f"\r{name:30}", end="", file=sys.stderr)
    for part, make in zip(WHOLE, (zoo, verdicts, views, plans), strict=True):
        if part in parts:
            told[part] = make()
    print(f"\r{'':30}\r", end="", file=sys.stderr)
    return json.loads(json.dumps(told, default=plain))


def differences(before, after, place: str = "") -> list[str]:
    """Where ``after`` isn't ``before``; what only one of them has counts."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [*before, *(key for key in after if key not in before)]
        return [line for key in keys for line in differences(before.get(key), after.get(key), f"{place}/{key}")]
    return [] if before == after else [f"{place}: {before!r} -> {after!r}"]


def asked_for(told: dict, only: list[str], parts: set[str]) -> dict:
    """What of a file was asked for this time: these kernels, and these parts of them."""
    words = {"run": ("run", "same counts"), "listing": ("listing amd", "listing best")}
    keys = {key for part in parts for key in words.get(part, (part,))}
    rows = {name: {key: told[name][key] for key in keys & set(told[name])} for name in only if name in told}
    return rows | {part: told[part] for part in WHOLE if part in parts and part in told}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="the JSON file to write; - writes none")
    parser.add_argument("--only", help="kernels, with commas between them", default=",".join(ck.kernels))
    parser.add_argument("--parts", help=f"of {', '.join(PARTS)}", default=",".join(PARTS))
    parser.add_argument("--compare", metavar="FILE", help="tell what differs from this one, and fail if anything does")
    asked = parser.parse_args()
    only, parts = [name for name in asked.only.split(",") if name], set(asked.parts.split(","))
    told = write(only, parts)
    if asked.out != "-":
        Path(asked.out).write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if not asked.compare:
        return 0
    before = json.loads(Path(asked.compare).read_text(encoding="utf-8"))
    everything = not {"--only", "--parts"} & {word.split("=")[0] for word in sys.argv}
    found = differences(before if everything else asked_for(before, only, parts), told)
    print("\n".join(found) or "equal")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
