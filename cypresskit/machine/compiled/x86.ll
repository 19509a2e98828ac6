; Set and restore the mode that flushes subnormals, in MXCSR. Bits 15 and 6 flush results and operands.

declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

; Return the register's value before.
define private i64 @flush() alwaysinline {
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %before = load i32, ptr %place
  %flushing = or i32 %before, 32832
  store i32 %flushing, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  %saved = zext i32 %before to i64
  ret i64 %saved
}

define private void @restore(i64 %saved) alwaysinline {
  %place = alloca i32
  %before = trunc i64 %saved to i32
  store i32 %before, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)
  ret void
}

attributes #0 = { "denormal-fp-math-f32"="preserve-sign,preserve-sign" }
