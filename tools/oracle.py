"""Write down what a redesign must leave as it is, byte for byte, or compare with what was written down before.

    python tools/oracle.py before.json              # everything, a minute or two
    ... change the code ...
    python tools/oracle.py after.json --compare before.json
    python tools/oracle.py - --only sgemm_tn,dgemm_nn --parts listing,time --compare before.json

For each kernel of the catalogue: the counts of a run (``run``), a hash of the arrays that it leaves on each engine, the
explaining one, the compiled one and the one that runs VLIW code (``bits``), a hash of the listing (``listing``), and
``Report.row()`` at three sizes (``time``). For each bug of the zoo, the findings' texts (``zoo``).
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
from cypresskit.machine.launch import prepare  # noqa: E402
from cypresskit.machine.vliw import execute  # noqa: E402

PARTS = ("run", "bits", "listing", "time", "zoo")
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
            row["listing"] = hashlib.sha256(ck.compile(kernel.program).listing().encode()).hexdigest()[:16]
        if "time" in parts:
            row["time"] = {str(n): ck.simulate(name, n).row() for n in SIZES}
        told[name] = row
        print(f"\r{name:30}", end="", file=sys.stderr)
    if "zoo" in parts:
        told["zoo"] = zoo()
    print(f"\r{'':30}\r", end="", file=sys.stderr)
    return json.loads(json.dumps(told, default=plain))


def differences(before, after, place: str = "") -> list[str]:
    """Where ``after`` isn't ``before``; what was not written this time doesn't count."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in after if place.count("/") < 1 or key in before or key in after]
        found = [line for key in keys for line in differences(before.get(key), after[key], f"{place}/{key}")]
        return found + [f"{place}/{key}: gone" for key in before if place.count("/") > 1 and key not in after]
    return [] if before == after else [f"{place}: {before!r} -> {after!r}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="the JSON file to write; - writes none")
    parser.add_argument("--only", help="kernels, with commas between them", default=",".join(ck.kernels))
    parser.add_argument("--parts", help=f"of {', '.join(PARTS)}", default=",".join(PARTS))
    parser.add_argument("--compare", metavar="FILE", help="tell what differs from this one, and fail if anything does")
    asked = parser.parse_args()
    told = write([n for n in asked.only.split(",") if n], set(asked.parts.split(",")))
    if asked.out != "-":
        Path(asked.out).write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if not asked.compare:
        return 0
    found = differences(json.loads(Path(asked.compare).read_text(encoding="utf-8")), told)
    print("\n".join(found) or "equal")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
