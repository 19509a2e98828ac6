; What the compiler's arithmetic means, in LLVM's own language; and the places in a kernel's text.

define internal float @ADD(float %a, float %b) alwaysinline {
  %r = fadd float %a, %b
  ret float %r
}
define internal float @MUL_IEEE(float %a, float %b) alwaysinline {
  %r = fmul float %a, %b
  ret float %r
}
define internal float @MULADD_IEEE(float %a, float %b, float %c) alwaysinline {
  %r = call float @llvm.fmuladd.f32(float %a, float %b, float %c)
  ret float %r
}
define internal float @FMA(float %a, float %b, float %c) alwaysinline {
  %r = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %r
}
define internal float @absolute_float(float %a) alwaysinline {
  %r = call float @llvm.fabs.f32(float %a)
  ret float %r
}
define internal double @absolute_double(double %a) alwaysinline {
  %r = call double @llvm.fabs.f64(double %a)
  ret double %r
}
define internal float @FLOOR(float %a) alwaysinline {
  %r = call float @llvm.floor.f32(float %a)
  ret float %r
}
define internal float @TRUNC(float %a) alwaysinline {
  %r = call float @llvm.trunc.f32(float %a)
  ret float %r
}
define internal float @RNDNE(float %a) alwaysinline {
  %r = call float @llvm.rint.f32(float %a)
  ret float %r
}
define internal float @MIN_DX10(float %a, float %b) alwaysinline {
  %r = call float @llvm.minnum.f32(float %a, float %b)
  ret float %r
}
define internal float @MAX_DX10(float %a, float %b) alwaysinline {
  %r = call float @llvm.maxnum.f32(float %a, float %b)
  ret float %r
}
define internal float @MOV(float %a) alwaysinline {
  ret float %a
}
define internal i32 @FLT_TO_INT(float %a) alwaysinline {
  %r = fptosi float %a to i32
  ret i32 %r
}
define internal float @INT_TO_FLT(i32 %a) alwaysinline {
  %r = sitofp i32 %a to float
  ret float %r
}
define internal float @UINT_TO_FLT(i32 %a) alwaysinline {
  %r = uitofp i32 %a to float
  ret float %r
}

define internal double @ADD_64(double %a, double %b) alwaysinline {
  %r = fadd double %a, %b
  ret double %r
}
define internal double @MUL_64(double %a, double %b) alwaysinline {
  %r = fmul double %a, %b
  ret double %r
}
define internal double @FMA_64(double %a, double %b, double %c) alwaysinline {
  %r = call double @llvm.fma.f64(double %a, double %b, double %c)
  ret double %r
}

define internal i32 @ADD_INT(i32 %a, i32 %b) alwaysinline {
  %r = add i32 %a, %b
  ret i32 %r
}
define internal i32 @SUB_INT(i32 %a, i32 %b) alwaysinline {
  %r = sub i32 %a, %b
  ret i32 %r
}
define internal i32 @MULLO_INT(i32 %a, i32 %b) alwaysinline {
  %r = mul i32 %a, %b
  ret i32 %r
}
define internal i32 @AND_INT(i32 %a, i32 %b) alwaysinline {
  %r = and i32 %a, %b
  ret i32 %r
}
define internal i32 @OR_INT(i32 %a, i32 %b) alwaysinline {
  %r = or i32 %a, %b
  ret i32 %r
}
define internal i32 @XOR_INT(i32 %a, i32 %b) alwaysinline {
  %r = xor i32 %a, %b
  ret i32 %r
}
define internal i32 @LSHL_INT(i32 %a, i32 %b) alwaysinline {
  %r = shl i32 %a, %b
  ret i32 %r
}
define internal i32 @LSHR_INT(i32 %a, i32 %b) alwaysinline {
  %r = lshr i32 %a, %b
  ret i32 %r
}
define internal i32 @ASHR_INT(i32 %a, i32 %b) alwaysinline {
  %r = ashr i32 %a, %b
  ret i32 %r
}
define internal i32 @RECIP_UINT(i32 %a) alwaysinline {
  %r = udiv i32 -1, %a
  ret i32 %r
}
define internal i32 @MULHI_UINT(i32 %a, i32 %b) alwaysinline {
  %x = zext i32 %a to i64
  %y = zext i32 %b to i64
  %p = mul i64 %x, %y
  %h = lshr i64 %p, 32
  %r = trunc i64 %h to i32
  ret i32 %r
}
define internal i32 @CNDE_INT(i32 %a, i32 %b, i32 %c) alwaysinline {
  %z = icmp eq i32 %a, 0
  %r = select i1 %z, i32 %b, i32 %c
  ret i32 %r
}
define internal float @CEIL(float %a) alwaysinline {
  %r = call float @llvm.ceil.f32(float %a)
  ret float %r
}
define internal float @FRACT(float %a) alwaysinline {
  %f = call float @llvm.floor.f32(float %a)
  %r = fsub float %a, %f
  ret float %r
}
define internal float @RECIP_IEEE(float %a) alwaysinline {
  %r = fdiv afn float 1.0, %a
  ret float %r
}
define internal float @SQRT_IEEE(float %a) alwaysinline {
  %r = call afn float @llvm.sqrt.f32(float %a)
  ret float %r
}
define internal float @RECIPSQRT_IEEE(float %a) alwaysinline {
  %q = call afn contract float @llvm.sqrt.f32(float %a)
  %r = fdiv afn contract float 1.0, %q
  ret float %r
}
define internal float @DIV_IEEE(float %a, float %b, float %c) alwaysinline {
  %r = fdiv float %a, %b
  ret float %r
}
define internal i32 @FLT_TO_UINT(float %a) alwaysinline {
  %r = fptoui float %a to i32
  ret i32 %r
}
define internal double @FLT32_TO_FLT64(float %a) alwaysinline {
  %r = fpext float %a to double
  ret double %r
}
define internal float @FLT64_TO_FLT32(double %a) alwaysinline {
  %r = fptrunc double %a to float
  ret float %r
}
define internal double @MIN_64(double %a, double %b) alwaysinline {
  %r = call double @llvm.minnum.f64(double %a, double %b)
  ret double %r
}
define internal double @MAX_64(double %a, double %b) alwaysinline {
  %r = call double @llvm.maxnum.f64(double %a, double %b)
  ret double %r
}
define internal double @FRACT_64(double %a) alwaysinline {
  %f = call double @llvm.floor.f64(double %a)
  %r = fsub double %a, %f
  ret double %r
}
define internal double @DIV_64(double %a, double %b, double %c) alwaysinline {
  %r = fdiv double %a, %b
  ret double %r
}
define internal i32 @MIN_INT(i32 %a, i32 %b) alwaysinline {
  %r = call i32 @llvm.smin.i32(i32 %a, i32 %b)
  ret i32 %r
}
define internal i32 @MAX_INT(i32 %a, i32 %b) alwaysinline {
  %r = call i32 @llvm.smax.i32(i32 %a, i32 %b)
  ret i32 %r
}
define internal i32 @MIN_UINT(i32 %a, i32 %b) alwaysinline {
  %r = call i32 @llvm.umin.i32(i32 %a, i32 %b)
  ret i32 %r
}
define internal i32 @MAX_UINT(i32 %a, i32 %b) alwaysinline {
  %r = call i32 @llvm.umax.i32(i32 %a, i32 %b)
  ret i32 %r
}
define internal i32 @NOT_INT(i32 %a) alwaysinline {
  %r = xor i32 %a, -1
  ret i32 %r
}
define internal i32 @BCNT_INT(i32 %a) alwaysinline {
  %r = call i32 @llvm.ctpop.i32(i32 %a)
  ret i32 %r
}
define internal i32 @ADDC_UINT(i32 %a, i32 %b) alwaysinline {
  %s = add i32 %a, %b
  %t = icmp ult i32 %s, %a
  %r = zext i1 %t to i32
  ret i32 %r
}
define internal i32 @SUBB_UINT(i32 %a, i32 %b) alwaysinline {
  %t = icmp ult i32 %a, %b
  %r = zext i1 %t to i32
  ret i32 %r
}
define internal i32 @MULHI_INT(i32 %a, i32 %b) alwaysinline {
  %x = sext i32 %a to i64
  %y = sext i32 %b to i64
  %p = mul i64 %x, %y
  %h = ashr i64 %p, 32
  %r = trunc i64 %h to i32
  ret i32 %r
}
define internal i32 @MUL_UINT24(i32 %a, i32 %b) alwaysinline {
  %x = and i32 %a, 16777215
  %y = and i32 %b, 16777215
  %r = mul i32 %x, %y
  ret i32 %r
}
define internal i32 @MULADD_UINT24(i32 %a, i32 %b, i32 %c) alwaysinline {
  %x = and i32 %a, 16777215
  %y = and i32 %b, 16777215
  %p = mul i32 %x, %y
  %r = add i32 %p, %c
  ret i32 %r
}
define internal i32 @MULHI_UINT24(i32 %a, i32 %b) alwaysinline {
  %x = and i32 %a, 16777215
  %y = and i32 %b, 16777215
  %r = call i32 @MULHI_UINT(i32 %x, i32 %y)
  ret i32 %r
}
define internal i32 @BFE_UINT(i32 %a, i32 %b, i32 %c) alwaysinline {
  %f = and i32 %b, 31
  %w = and i32 %c, 31
  %s = lshr i32 %a, %f
  %o = shl i32 1, %w
  %m = sub i32 %o, 1
  %r = and i32 %s, %m
  ret i32 %r
}
define internal i32 @BFM_INT(i32 %a, i32 %b) alwaysinline {
  %w = and i32 %a, 31
  %f = and i32 %b, 31
  %o = shl i32 1, %w
  %m = sub i32 %o, 1
  %r = shl i32 %m, %f
  ret i32 %r
}
define internal i32 @BFI_INT(i32 %a, i32 %b, i32 %c) alwaysinline {
  %x = and i32 %a, %b
  %n = xor i32 %a, -1
  %y = and i32 %n, %c
  %r = or i32 %x, %y
  ret i32 %r
}
define internal float @clamped(float %a) alwaysinline {
  %b = call float @llvm.maxnum.f32(float %a, float 0.0)
  %r = call float @llvm.minnum.f32(float %b, float 1.0)
  ret float %r
}
define internal i32 @BFE_INT(i32 %a, i32 %b, i32 %c) alwaysinline {
  %f = and i32 %b, 31
  %w = and i32 %c, 31
  %s = lshr i32 %a, %f
  %n = sub i32 32, %w
  %m = and i32 %n, 31
  %t = shl i32 %s, %m
  %x = ashr i32 %t, %m
  %z = icmp eq i32 %w, 0
  %r = select i1 %z, i32 0, i32 %x
  ret i32 %r
}

; Relations: a word of ones, or a test.
define internal i32 @SETGT_DX10(float %a, float %b) alwaysinline {
  %t = fcmp ogt float %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETGE_DX10(float %a, float %b) alwaysinline {
  %t = fcmp oge float %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETE_DX10(float %a, float %b) alwaysinline {
  %t = fcmp oeq float %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETNE_DX10(float %a, float %b) alwaysinline {
  %t = fcmp une float %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETGT_INT(i32 %a, i32 %b) alwaysinline {
  %t = icmp sgt i32 %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETGE_INT(i32 %a, i32 %b) alwaysinline {
  %t = icmp sge i32 %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETE_INT(i32 %a, i32 %b) alwaysinline {
  %t = icmp eq i32 %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i1 @PRED_SETE_INT(i32 %a, i32 %b) alwaysinline {
  %r = icmp eq i32 %a, %b
  ret i1 %r
}
define internal i32 @SETNE_INT(i32 %a, i32 %b) alwaysinline {
  %t = icmp ne i32 %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i1 @PRED_SETNE_INT(i32 %a, i32 %b) alwaysinline {
  %r = icmp ne i32 %a, %b
  ret i1 %r
}
define internal i32 @SETGT_UINT(i32 %a, i32 %b) alwaysinline {
  %t = icmp ugt i32 %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETGE_UINT(i32 %a, i32 %b) alwaysinline {
  %t = icmp uge i32 %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETGT_64(double %a, double %b) alwaysinline {
  %t = fcmp ogt double %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETGE_64(double %a, double %b) alwaysinline {
  %t = fcmp oge double %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETE_64(double %a, double %b) alwaysinline {
  %t = fcmp oeq double %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}
define internal i32 @SETNE_64(double %a, double %b) alwaysinline {
  %t = fcmp une double %a, %b
  %r = sext i1 %t to i32
  ret i32 %r
}

declare float @llvm.ceil.f32(float)
declare float @llvm.sqrt.f32(float)
declare double @llvm.minnum.f64(double, double)
declare double @llvm.maxnum.f64(double, double)
declare double @llvm.floor.f64(double)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.umin.i32(i32, i32)
declare i32 @llvm.umax.i32(i32, i32)
declare i32 @llvm.ctpop.i32(i32)
declare float @llvm.fmuladd.f32(float, float, float)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)
declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare float @llvm.floor.f32(float)
declare float @llvm.trunc.f32(float)
declare float @llvm.rint.f32(float)
declare float @llvm.minnum.f32(float, float)
declare float @llvm.maxnum.f32(float, float)

!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!4, !5}
!0 = !DIFile(filename: "kernel.il", directory: "")
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !0, isOptimized: true, emissionKind: LineTablesOnly)
!2 = !DISubroutineType(types: !6)
!3 = distinct !DISubprogram(name: "main", file: !0, line: 1, type: !2, unit: !1, spFlags: DISPFlagDefinition)
!4 = !{i32 2, !"Debug Info Version", i32 3}
!5 = !{i32 2, !"Dwarf Version", i32 4}
!6 = !{}
