; Set and restore the mode that flushes subnormals, in MXCSR. Bits 15 and 6 flush results and operands; bit 4 is set
; after a result has been flushed.

declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

; Return the register's value before.
define private i64 @flush() alwaysinline {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %before = load i32, ptr %place
  %no_underflow = and i32 %before, -17
  %flushing = or i32 %no_underflow, 32832
  store i32 %flushing, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  %saved = zext i32 %before to i64
  ret i64 %saved
}

; Return whether a result has been flushed.
define private i1 @restore(i64 %saved) alwaysinline {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %flags = load i32, ptr %place
  %before = trunc i64 %saved to i32
  store i32 %before, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  %underflow = and i32 %flags, 16
  %underflowed = icmp ne i32 %underflow, 0
  ret i1 %underflowed
}

attributes #0 = { "denormal-fp-math-f32"="preserve-sign,preserve-sign" }
