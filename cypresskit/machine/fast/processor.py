"""The processor that code is generated for, this host's or another one; and its flush mode for
subnormals, which is set when compiled code begins, and set back at its end.

x86 flushes what the chip flushes: results that are subnormal when rounded to 24 bits. ARM flushes
before it rounds, so that a result just below 2^-126 becomes 0 instead of 2^-126. But each flushed
result leaves a flag. Where that is set at the end (status UNDERFLOWED), the launch is run again on
code that flushes in software, as it always is on hosts without such a mode.
"""

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cypresskit.il.host_llvm import host_processor

FLAGGED = ("arm", "flags")  # modes in which a flushed result may be wrong


def flush_mode(mode: str) -> str:
    """LLVM's text of ``@flush`` and ``@restore``, which turn a mode on and back; "" for "soft",
    which is none. "flags" is x86 treated as ARM, for tests.
    """
    file = {"x86": "x86.ll", "flags": "x86.ll", "arm": "arm.ll"}.get(mode)
    return Path(__file__).with_name(file).read_text(encoding="utf-8") if file else ""


@dataclass(frozen=True)
class HostProcessor:
    """An LLVM processor ``name`` with ``features``, and the mode that flushes subnormals (see
    ``flush_mode``).
    """

    name: str
    features: str
    mode: str


def this_host() -> HostProcessor:
    """The processor that this process runs on."""
    return processor("")


@cache
def processor(name: str) -> HostProcessor:
    """The processor to generate code for, as if the host were LLVM's CPU ``name``; "portable" is
    this one without a flush mode, "flags" with one trusted as far as ARM's, and "" this one.
    """
    cpu, features = host_processor() if name in ("", "portable", "flags") else (name, "")
    machine = platform.machine().lower()
    on_x86, on_arm = machine in ("x86_64", "amd64"), machine in ("aarch64", "arm64")
    mode = "soft" if name == "portable" or not (on_x86 or on_arm) else "arm" if on_arm else "x86"
    mode = "flags" if name == "flags" and mode == "x86" else mode
    return HostProcessor(cpu, features, mode)
