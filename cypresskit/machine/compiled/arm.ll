; Set and restore the mode that flushes subnormals, in FPCR (bit 24). Bit 3 of FPSR is set after a result has been
; flushed.

declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
declare i64 @llvm.aarch64.get.fpsr()
declare void @llvm.aarch64.set.fpsr(i64)

; Return the register's value before.
define private i64 @flush() alwaysinline {
  %saved = call i64 @llvm.aarch64.get.fpcr()
  %flushing = or i64 %saved, 16777216
  call void @llvm.aarch64.set.fpcr(i64 %flushing)
  %flags = call i64 @llvm.aarch64.get.fpsr()
  %no_underflow = and i64 %flags, -9
  call void @llvm.aarch64.set.fpsr(i64 %no_underflow)
  ret i64 %saved
}

; Return whether a result has been flushed.
define private i1 @restore(i64 %saved) alwaysinline {
  %flags = call i64 @llvm.aarch64.get.fpsr()
  call void @llvm.aarch64.set.fpcr(i64 %saved)
  %underflow = and i64 %flags, 8
  %underflowed = icmp ne i64 %underflow, 0
  ret i1 %underflowed
}

attributes #0 = { "denormal-fp-math-f32"="preserve-sign,preserve-sign" }
