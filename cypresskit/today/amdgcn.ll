; How a kernel reads and writes on GPUs of the GCN and RDNA families. Arguments called %descriptors,
; %constants and %memory are the kernel's.

; Memory: elements of four floats. An output has a place in the table of descriptors, from 128 on:
; where its pixels begin, and how many a row has.
define internal i32 @constant(ptr addrspace(4) %constants, i32 %at) alwaysinline {
  %p = getelementptr i8, ptr addrspace(4) %constants, i32 %at
  %r = load i32, ptr addrspace(4) %p
  ret i32 %r
}
define internal ptr addrspace(1) @element(ptr addrspace(1) %memory, i32 %place, i32 %index) alwaysinline {
  %n = add i32 %index, %place
  %p = getelementptr <4 x float>, ptr addrspace(1) %memory, i32 %n
  ret ptr addrspace(1) %p
}
define internal <4 x float> @MEM_READ(ptr addrspace(1) %memory, i32 %index, i32 %place) alwaysinline {
  %p = call ptr addrspace(1) @element(ptr addrspace(1) %memory, i32 %place, i32 %index)
  %r = load <4 x float>, ptr addrspace(1) %p, align 16
  ret <4 x float> %r
}
define internal void @MEM_WRITE(ptr addrspace(1) %memory, float %a, i32 %index, i32 %place, i32 %channel) alwaysinline {
  %p = call ptr addrspace(1) @element(ptr addrspace(1) %memory, i32 %place, i32 %index)
  %q = getelementptr float, ptr addrspace(1) %p, i32 %channel
  store float %a, ptr addrspace(1) %q, align 4
  ret void
}
define internal ptr addrspace(1) @pixel(ptr addrspace(4) %descriptors, i32 %n, float %x, float %y) alwaysinline {
  %at = mul i32 %n, 32
  %d = getelementptr i8, ptr addrspace(4) %descriptors, i32 %at
  %array = load ptr addrspace(1), ptr addrspace(4) %d, align 4
  %e = getelementptr i8, ptr addrspace(4) %d, i32 8
  %width = load i32, ptr addrspace(4) %e
  %across = fptosi float %x to i32
  %down = fptosi float %y to i32
  %row = mul i32 %down, %width
  %number = add i32 %row, %across
  %p = getelementptr <4 x float>, ptr addrspace(1) %array, i32 %number
  ret ptr addrspace(1) %p
}
define internal void @EXPORT(ptr addrspace(4) %descriptors, float %a, float %x, float %y, i32 %place, i32 %channel) alwaysinline {
  %n = add i32 %place, 128
  %p = call ptr addrspace(1) @pixel(ptr addrspace(4) %descriptors, i32 %n, float %x, float %y)
  %q = getelementptr float, ptr addrspace(1) %p, i32 %channel
  store float %a, ptr addrspace(1) %q, align 4
  ret void
}
define internal void @LDS_WRITE(i32 %address, i32 %a, i32 %offset) alwaysinline {
  %p = inttoptr i32 %address to ptr addrspace(3)
  store i32 %a, ptr addrspace(3) %p, align 4
  ret void
}
define internal void @LDS_WRITE_REL(i32 %address, i32 %a, i32 %b, i32 %offset) alwaysinline {
  %second = add i32 %address, %offset
  call void @LDS_WRITE(i32 %address, i32 %a, i32 0)
  call void @LDS_WRITE(i32 %second, i32 %b, i32 0)
  ret void
}
define internal i32 @LDS_READ_RET(i32 %address, i32 %offset) alwaysinline {
  %p = inttoptr i32 %address to ptr addrspace(3)
  %r = load i32, ptr addrspace(3) %p, align 4
  ret i32 %r
}
define internal <2 x i32> @LDS_READ_REL_RET(i32 %address, i32 %offset) alwaysinline {
  %second = add i32 %address, %offset
  %a = call i32 @LDS_READ_RET(i32 %address, i32 0)
  %b = call i32 @LDS_READ_RET(i32 %second, i32 0)
  %half = insertelement <2 x i32> undef, i32 %a, i32 0
  %r = insertelement <2 x i32> %half, i32 %b, i32 1
  ret <2 x i32> %r
}
define internal void @GROUP_BARRIER() alwaysinline {
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ret void
}
define internal <4 x float> @SAMPLE_image(ptr addrspace(4) %descriptors, float %x0, float %y0, i32 %dx, i32 %dy, i32 %n) alwaysinline {
  %across = sitofp i32 %dx to float
  %down = sitofp i32 %dy to float
  %x = fadd nsz float %x0, %across
  %y = fadd nsz float %y0, %down
  %at = mul i32 %n, 32
  %d = getelementptr i8, ptr addrspace(4) %descriptors, i32 %at
  %texture = load <8 x i32>, ptr addrspace(4) %d, align 4
  %e = getelementptr i8, ptr addrspace(4) %descriptors, i32 4064
  %sampler = load <4 x i32>, ptr addrspace(4) %e, align 4
  %r = call <4 x float> @llvm.amdgcn.image.sample.lz.2d.v4f32.f32.v8i32.v4i32(i32 15, float %x, float %y, <8 x i32> %texture, <4 x i32> %sampler, i1 true, i32 0, i32 0)
  ret <4 x float> %r
}
define internal <4 x float> @SAMPLE_array(ptr addrspace(4) %descriptors, float %x0, float %y0, i32 %dx, i32 %dy, i32 %n) alwaysinline {
  %across = sitofp i32 %dx to float
  %down = sitofp i32 %dy to float
  %x = fadd nsz float %x0, %across
  %y = fadd nsz float %y0, %down
  %p = call ptr addrspace(1) @pixel(ptr addrspace(4) %descriptors, i32 %n, float %x, float %y)
  %r = load <4 x float>, ptr addrspace(1) %p, align 16
  ret <4 x float> %r
}

define internal <4 x float> @LD_image(ptr addrspace(4) %descriptors, i32 %x0, i32 %y0, i32 %dx, i32 %dy, i32 %n) alwaysinline {
  %x = add i32 %x0, %dx
  %y = add i32 %y0, %dy
  %at = mul i32 %n, 32
  %d = getelementptr i8, ptr addrspace(4) %descriptors, i32 %at
  %texture = load <8 x i32>, ptr addrspace(4) %d, align 4
  %r = call <4 x float> @llvm.amdgcn.image.load.2d.v4f32.i32.v8i32(i32 15, i32 %x, i32 %y, <8 x i32> %texture, i32 0, i32 0)
  ret <4 x float> %r
}
define internal <4 x float> @LD_array(ptr addrspace(4) %descriptors, i32 %x0, i32 %y0, i32 %dx, i32 %dy, i32 %n) alwaysinline {
  %x = sitofp i32 %x0 to float
  %y = sitofp i32 %y0 to float
  %r = call <4 x float> @SAMPLE_array(ptr addrspace(4) %descriptors, float %x, float %y, i32 %dx, i32 %dy, i32 %n)
  ret <4 x float> %r
}

declare void @llvm.amdgcn.s.barrier()
declare <4 x float> @llvm.amdgcn.image.sample.lz.2d.v4f32.f32.v8i32.v4i32(i32, float, float, <8 x i32>, <4 x i32>, i1, i32, i32)
declare <4 x float> @llvm.amdgcn.image.load.2d.v4f32.i32.v8i32(i32, i32, i32, <8 x i32>, i32, i32)
