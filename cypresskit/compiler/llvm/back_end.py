"""Run LLVM's r600 target, in a process of its own: LLVM ends its process where it can't go on.

Assembly for the catalog is stored in ``data/llvm.json``, by a hash of its IR, so that lessons show
the same on every machine, with any llvmlite and with none, as in a browser. ``python -m
tools.llvm_code`` writes it.
"""

import hashlib
import json
import subprocess
import sys
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from cypresskit.compiler.ir import CompileError
from cypresskit.il.host_llvm import HAS_LLVM
from cypresskit.subprocesses import python_command

STORED = Path(__file__).parents[2] / "data/llvm.json"
MAIN = "cypresskit.compiler.llvm.back_end"  # the program of the process
LIMIT_BYTES, SECONDS = 4 << 30, 30  # of its address space; until its parent ends it
OPTIONS = (
    "-r600-if-convert=0",  # predicated slots are none of our code's
    "-use-unknown-locations=Enable",  # a copy without a line says so
)
SPILLS = "StackSlot"  # in LLVM 22's error message if registers don't suffice: another's is a guess


def ir_hash(ir: str) -> str:
    """Return the name under which the assembly of some IR is stored."""
    return hashlib.sha256(ir.encode()).hexdigest()[:16]


@lru_cache(maxsize=128)
def assembly(ir: str, name: str) -> tuple[str, str]:
    """Return LLVM's version and its assembly for the IR of the kernel ``name``: what is stored, or
    else what a new process gives.

    Raises
    ------
    CompileError
        If LLVM ends its process, has no r600 target, or isn't installed.
    """
    version, text = stored().get(ir_hash(ir)) or run_llvm(ir, name)
    return version, text


@cache
def stored() -> dict[str, list[str]]:
    """Return LLVM's version and assembly of what is stored, by ``ir_hash``."""
    texts: dict[str, list[str]] = json.loads(STORED.read_text(encoding="utf-8"))
    return texts


def run_llvm(ir: str, name: str) -> tuple[str, str]:
    """Return LLVM's version and its assembly. Raises ``CompileError`` as ``assembly`` does."""
    if not HAS_LLVM:
        raise CompileError(
            f"{name}: LLVM's code of kernels of your own needs an installation: here is only what"
            " is stored for the catalog"
        )
    command = python_command(sys.path, MAIN)
    try:
        done = subprocess.run(
            command, input=ir.encode(), capture_output=True, timeout=SECONDS, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        raise CompileError(f"{name}: LLVM takes more than {SECONDS} s for it") from None
    if done.returncode:
        errors = done.stderr.decode(errors="replace").strip()
        what = f"LLVM ends its process: {(errors.splitlines() or ['no reason'])[-1]}"
        if SPILLS in errors:
            what = "LLVM's registers don't suffice, and it can't spill any: compute a smaller block"
        raise CompileError(f"{name}: {what}")
    version, text = json.loads(done.stdout)
    return version, text


def limit_process() -> None:
    """Limit this process's memory, and its processor time, which its parent may not live to see."""
    with suppress(ImportError, OSError, ValueError):  # other systems have no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 1, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))


def main() -> None:
    """Compile the IR of the standard input. Write LLVM's version and the assembly as JSON."""
    import llvmlite.binding as llvm

    limit_process()
    for option in OPTIONS:
        llvm.set_option("", option)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("r600--").create_target_machine(cpu="cypress", opt=3)
    module = llvm.parse_assembly(sys.stdin.read())
    module.verify()
    passes = llvm.create_new_module_pass_manager()
    passes.add_loop_rotate_pass()  # or else an iteration copies each element of C
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(2)))
    major, minor, patch = llvm.llvm_version_info
    text = target.emit_assembly(module).partition("\nk:\n")[2].partition("\n.Lfunc_end")[0]
    json.dump([f"LLVM {major}.{minor}.{patch}", text], sys.stdout)
