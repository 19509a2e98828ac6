; How a kernel turns the flushing of subnormals on in FPCR (bit 24) and sets it back. Bit 3 of FPSR is set once a result
; has been flushed.

declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
declare i64 @llvm.aarch64.get.fpsr()
declare void @llvm.aarch64.set.fpsr(i64)

; The register as it was.
define private i64 @flush() alwaysinline {
  %saved = call i64 @llvm.aarch64.get.fpcr()
  %flushing = or i64 %saved, 16777216
  call void @llvm.aarch64.set.fpcr(i64 %flushing)
  %flags = call i64 @llvm.aarch64.get.fpsr()
  %no_underflow = and i64 %flags, -9
  call void @llvm.aarch64.set.fpsr(i64 %no_underflow)
  ret i64 %saved
}

; Whether a result has been flushed.
define private i1 @restore(i64 %saved) alwaysinline {
  %flags = call i64 @llvm.aarch64.get.fpsr()
  call void @llvm.aarch64.set.fpcr(i64 %saved)
  %underflow = and i64 %flags, 8
  %underflowed = icmp ne i64 %underflow, 0
  ret i1 %underflowed
}
