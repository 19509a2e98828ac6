"""The processor that code is generated for, this host's or another one; and its flush mode for subnormals, which is
set when compiled code begins, and set back at its end.

x86 flushes what the chip flushes: results that are subnormal when rounded to 24 bits. ARM flushes before it rounds, so
that a result just below 2^-126 becomes 0 instead of 2^-126. But each flushed result leaves a flag. Where that is set at
the end (status UNDERFLOWED), the launch is run again on code that flushes in software, as it always is on hosts without
such a mode.
"""

import platform
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from cypresskit.il.fused import host_machine, host_processor

X86_BEGIN = """  %saved_mode = alloca i32
  %new_mode = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %saved_mode)
  %mode = load i32, ptr %saved_mode
  %no_underflow = and i32 %mode, -17
  %flushing = or i32 %no_underflow, 32832
  store i32 %flushing, ptr %new_mode
  call void @llvm.x86.sse.ldmxcsr(ptr %new_mode)"""
X86_END = """  call void @llvm.x86.sse.stmxcsr(ptr %new_mode)
  %flags = load i32, ptr %new_mode
  %underflow = and i32 %flags, 16
  %underflowed = icmp ne i32 %underflow, 0
  call void @llvm.x86.sse.ldmxcsr(ptr %saved_mode)"""
ARM_BEGIN = """  %saved_mode = call i64 @llvm.aarch64.get.fpcr()
  %flushing = or i64 %saved_mode, 16777216
  call void @llvm.aarch64.set.fpcr(i64 %flushing)
  %saved_flags = call i64 @llvm.aarch64.get.fpsr()
  %no_underflow = and i64 %saved_flags, -9
  call void @llvm.aarch64.set.fpsr(i64 %no_underflow)"""
ARM_END = """  %flags = call i64 @llvm.aarch64.get.fpsr()
  %underflow = and i64 %flags, 8
  %underflowed = icmp ne i64 %underflow, 0
  call void @llvm.aarch64.set.fpcr(i64 %saved_mode)"""
X86 = tuple(f"declare void @llvm.x86.sse.{name}(ptr)" for name in ("stmxcsr", "ldmxcsr"))
ARM = tuple(
    f"declare {text}"
    for name in ("fpcr", "fpsr")
    for text in (f"i64 @llvm.aarch64.get.{name}()", f"void @llvm.aarch64.set.{name}(i64)")
)


class Mode(NamedTuple):
    """How a function turns the host's flush mode on and back: declarations, the text at its beginning and at its end;
    ``flagged``: whether %underflowed, set there, tells of results that may be wrong."""

    declared: tuple[str, ...] = ()
    begin: str = ""
    end: str = ""
    flagged: bool = False


#: "flags" is x86 treated as ARM, for tests; "soft" is no mode at all.
MODES = {
    "x86": Mode(X86, X86_BEGIN, X86_END),
    "flags": Mode(X86, X86_BEGIN, X86_END, True),
    "arm": Mode(ARM, ARM_BEGIN, ARM_END, True),
    "soft": Mode(),
}


REGISTERS = {"%zmm": 32 * 64, "%ymm": 16 * 32, "%xmm": 16 * 16}  # bytes of all vector registers of x86
NEON = 32 * 16  # and of ARM's


@dataclass(frozen=True)
class Target:
    """An LLVM processor ``name`` with ``features``, the ``mode`` (of ``MODES``) that flushes subnormals, and bytes of
    ``vectors``, its vector registers."""

    name: str
    features: str
    mode: str
    vectors: int

    @property
    def room(self) -> int:
        """Bytes of vector registers for the sums of a loop and their operands."""
        return self.vectors * 7 // 8


def this_host() -> Target:
    """The processor that this process runs on."""
    return target("")


@cache
def target(name: str) -> Target:
    """The target to generate code for, as if the host were LLVM's CPU ``name``; "portable" is this one without a flush
    mode, "flags" with one that is trusted as far as ARM's, and "" this one."""
    import llvmlite.binding as llvm

    cpu, features = host_processor() if name in ("", "portable", "flags") else (name, "")
    text = """define void @f(ptr %p) {
      %a = load <16 x float>, ptr %p
      %r = fadd <16 x float> %a, %a
      store <16 x float> %r, ptr %p
      ret void
    }"""
    example = host_machine(cpu, features).emit_assembly(llvm.parse_assembly(text))
    machine = platform.machine().lower()
    on_x86, on_arm = machine in ("x86_64", "amd64"), machine in ("aarch64", "arm64")
    mode = "soft" if name == "portable" or not (on_x86 or on_arm) else "arm" if on_arm else "x86"
    vectors = next((size for register, size in REGISTERS.items() if register in example), NEON)
    mode = "flags" if name == "flags" and mode == "x86" else mode
    return Target(cpu, features, mode, vectors)
