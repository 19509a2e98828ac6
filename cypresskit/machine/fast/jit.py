"""LLVM IR to machine code, through llvmlite. Compiled kernels are kept for the life of the process,
and their object code on disk in the user's own cache. It will be executed: a folder that belongs to
anybody else is not used.
"""

import ctypes
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from cypresskit import il
from cypresskit.il import Program
from cypresskit.il.fused import host_machine
from cypresskit.machine.fast.target import Target, this_host
from cypresskit.machine.fast.texel_layout import TexelLayout
from cypresskit.machine.fast.translation import Translation

KEPT = 64  # compiled kernels in memory
FILES = 256  # and on disk
# lines of IR from which on LLVM improves nothing: that would take time by the square of the length
LONG = 30_000
SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)


def cache_folder() -> Path | None:
    """The folder of the user's cache for this package; None where the user has none: nobody of that
    name is known, and no variable says where they are at home.
    """
    folder = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    if not folder:
        folder = os.path.expanduser("~/.cache")
    return None if folder.startswith("~") else Path(folder, "cypresskit")


FOLDER = cache_folder()


@dataclass(frozen=True, eq=False)
class NativeCode:
    """A compiled program: ``call(context, counts, spill, budget, first, last)`` runs batches,
    without Python's lock. ``layouts`` of the textures that are fetched from.
    """

    translation: Translation
    layouts: dict[int, TexelLayout]
    call: Callable[..., int]
    engine: object  # owns the machine code
    literals: np.ndarray


def compiled(program: Program, soft: bool = False) -> NativeCode:
    """``program`` as machine code for this host, from memory if an equal program has been compiled
    before; ``soft``: without the host's flush mode.
    """
    return _compiled(program, replace(this_host(), mode="soft") if soft else this_host())


@lru_cache(maxsize=KEPT)
def _compiled(program: Program, target: Target) -> NativeCode:
    import llvmlite.binding as llvm

    file = FOLDER / f"kernel-{_key(program, target)}.bin" if FOLDER else None
    kept = _read(file) if file else None
    if kept is None:
        # Loaded only where it is needed: it is large.
        from cypresskit.machine.fast.translate import translate

        translation = translate(program, target)
        code = object_code(translation.text, target)
        if file and _source_hash().digest() == SOURCES.digest():
            _write(file, translation, code)
    else:
        translation, code = kept
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), host_machine(target.name, target.features)
    )
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return NativeCode(
        translation,
        {int(n): TexelLayout(*layout) for n, layout in translation.layouts.items()},
        SIGNATURE(engine.get_function_address("kernel")),
        engine,
        np.array(translation.literals, np.uint32),
    )


def object_code(text: str, target: Target) -> bytes:
    """The optimised machine code of a module."""
    import llvmlite.binding as llvm

    level = 1 if text.count("\n") < LONG else 0  # the second level's passes gain nothing here
    machine = host_machine(target.name, target.features, 2 * level)
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_unrolling = tuning.loop_vectorization = tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


# On disk


ROOMS = Path(__file__).parent, Path(il.__file__).parent


def _source_hash() -> "hashlib._Hash":
    """The hash of all files that translation depends on."""
    return hashlib.sha256(
        b"".join(file.read_bytes() for room in ROOMS for file in sorted(room.glob("*.*")))
    )


#: Of the files as they were when this was imported. What is edited later must not pass for what
#: compiled the code: if they have changed, nothing is kept.
SOURCES = _source_hash()


def _key(program: Program, target: Target) -> str:
    """A hash of all that object code depends on: the program, the processor, LLVM and the
    translator.
    """
    import llvmlite.binding as llvm

    digest = SOURCES.copy()
    digest.update(repr((program.mode, program.expanded, target, llvm.llvm_version_info)).encode())
    return digest.hexdigest()[:32]


def _is_ours(folder: Path) -> bool:
    """Whether a folder is the user's own and writable by no one else."""
    status = folder.lstat()
    nobody_else = not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o022
    )
    return stat.S_ISDIR(status.st_mode) and nobody_else


def _read(file: Path) -> tuple[Translation, bytes] | None:
    """The translation and object code in a file, which is used now; None unless it is there, whole
    and the user's own.
    """
    try:
        if not _is_ours(file.parent):
            return None
        check, head, code = file.read_bytes().split(b"\n", 2)
        if check != _check(file, head, code):
            return None
        translation = Translation(**json.loads(head))
        os.utime(file)
        return translation, code
    except (OSError, TypeError, ValueError):
        return None


def _check(file: Path, head: bytes, code: bytes) -> bytes:
    """What the file of that name begins with if it holds these."""
    return hashlib.sha256(file.name.encode() + head + code).hexdigest().encode()


def _write(file: Path, translation: Translation, code: bytes) -> None:
    """Keep object code, in place of what was not used for longest; a reader finds all of it or
    none. Where nothing can be written, nothing is kept.
    """
    head = json.dumps(asdict(translation) | {"text": ""}).encode()
    try:
        file.parent.mkdir(0o700, parents=True, exist_ok=True)
        if not _is_ours(file.parent):
            return
        others = sorted(file.parent.glob("kernel-*.bin"), key=lambda other: other.stat().st_mtime)
        for old in others[: max(0, len(others) - FILES + 1)]:
            old.unlink(missing_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
            try:
                part.write(b"\n".join((_check(file, head, code), head, code)))
                part.close()
                os.replace(part.name, file)
            except OSError:
                os.unlink(part.name)
    except OSError:
        pass
