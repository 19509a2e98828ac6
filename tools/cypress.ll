; How a kernel reads and writes on Cypress, for LLVM's back end r600.

define internal i32 @constant(i32 %buffer, i32 %element, i32 %channel) alwaysinline {
  %at = shl i32 %element, 4
  %p = inttoptr i32 %at to ptr addrspace(8)
  %v = load <4 x float>, ptr addrspace(8) %p
  %f = extractelement <4 x float> %v, i32 %channel
  %r = bitcast float %f to i32
  ret i32 %r
}
define internal <4 x float> @MEM_READ(i32 %index, i32 %place) alwaysinline {
  %n = add i32 %index, %place
  %at = shl i32 %n, 4
  %p = inttoptr i32 %at to ptr addrspace(1)
  %r = load <4 x float>, ptr addrspace(1) %p
  ret <4 x float> %r
}
define internal void @MEM_WRITE(float %x, float %y, float %z, float %w, i32 %index, i32 %place) alwaysinline {
  %n = add i32 %index, %place
  %at = shl i32 %n, 4
  %p = inttoptr i32 %at to ptr addrspace(1)
  %a = insertelement <4 x float> undef, float %x, i32 0
  %b = insertelement <4 x float> %a, float %y, i32 1
  %c = insertelement <4 x float> %b, float %z, i32 2
  %d = insertelement <4 x float> %c, float %w, i32 3
  store <4 x float> %d, ptr addrspace(1) %p
  ret void
}
define internal <4 x float> @SAMPLE_texture(float %x, float %y, i32 %dx, i32 %dy, i32 %n) alwaysinline {
  %a = insertelement <4 x float> undef, float %x, i32 0
  %b = insertelement <4 x float> %a, float %y, i32 1
  %r = call <4 x float> @llvm.r600.tex(<4 x float> %b, i32 %dx, i32 %dy, i32 0, i32 %n, i32 %n, i32 0, i32 0, i32 0, i32 0)
  ret <4 x float> %r
}
declare <4 x float> @llvm.r600.tex(<4 x float>, i32, i32, i32, i32, i32, i32, i32, i32, i32)
