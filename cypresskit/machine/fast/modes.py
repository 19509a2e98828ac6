"""The host's mode for subnormals: set when compiled code begins, and set back at its end.

x86 flushes what the chip flushes: results that are subnormal when rounded to 24 bits. ARM flushes before it rounds, so
that a result just below 2^-126 becomes 0 instead of 2^-126. But each flushed result leaves a flag. Where that is set at
the end (status UNDERFLOWED), the launch is run again on code that flushes in software.
"""

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

#: By mode: declarations, the text at the beginning, the text at the end, and whether a flag there tells of results
#: that may be wrong. "flags" is x86 treated as ARM, for tests; "soft" is no mode at all.
MODES = {
    "x86": (X86, X86_BEGIN, X86_END, False),
    "flags": (X86, X86_BEGIN, X86_END, True),
    "arm": (ARM, ARM_BEGIN, ARM_END, True),
    "soft": ((), "", "", False),
}
