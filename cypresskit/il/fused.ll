; r[y, x] = fma(a[y, x], b[y, x], c[y, x]), rounded once, for all rows, of sr items each; sa, sb and sc count the numbers
; from one row to the next. The result is not 0 if some number is infinite or NaN or, in single precision, if an operand
; is subnormal (at most 8388607 without its sign) or the result may have been (at most 8388608, the least normal number).

declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)

define i32 @fma_float(ptr noalias %a, i64 %sa, ptr noalias %b, i64 %sb, ptr noalias %c, i64 %sc, ptr noalias %r,
                      i64 %rows, i64 %sr) {
entry:
  br label %row
row:
  %y = phi i64 [0, %entry], [%nexty, %end]
  %odd = phi i32 [0, %entry], [%now, %end]
  %ya = mul i64 %y, %sa
  %ra = getelementptr float, ptr %a, i64 %ya
  %yb = mul i64 %y, %sb
  %rb = getelementptr float, ptr %b, i64 %yb
  %yc = mul i64 %y, %sc
  %rc = getelementptr float, ptr %c, i64 %yc
  %yr = mul i64 %y, %sr
  %rr = getelementptr float, ptr %r, i64 %yr
  br label %item
item:
  %x = phi i64 [0, %row], [%nextx, %item]
  %before = phi i32 [%odd, %row], [%now, %item]
  %pa = getelementptr float, ptr %ra, i64 %x
  %va = load float, ptr %pa
  %pb = getelementptr float, ptr %rb, i64 %x
  %vb = load float, ptr %pb
  %pc = getelementptr float, ptr %rc, i64 %x
  %vc = load float, ptr %pc
  %pr = getelementptr float, ptr %rr, i64 %x
  %vr = call float @llvm.fma.f32(float %va, float %vb, float %vc)
  store float %vr, ptr %pr
  %br = bitcast float %vr to i32
  %sizer = and i32 %br, 2147483647
  %special = icmp uge i32 %sizer, 2139095040
  %ba = bitcast float %va to i32
  %sizea = and i32 %ba, 2147483647
  %lessa = sub i32 %sizea, 1
  %odda = icmp ult i32 %lessa, 8388607
  %bb = bitcast float %vb to i32
  %sizeb = and i32 %bb, 2147483647
  %lessb = sub i32 %sizeb, 1
  %oddb = icmp ult i32 %lessb, 8388607
  %bc = bitcast float %vc to i32
  %sizec = and i32 %bc, 2147483647
  %lessc = sub i32 %sizec, 1
  %oddc = icmp ult i32 %lessc, 8388607
  %lessr = sub i32 %sizer, 1
  %oddr = icmp ult i32 %lessr, 8388608
  %o1 = or i1 %odda, %oddb
  %o2 = or i1 %oddc, %oddr
  %o3 = or i1 %o1, %o2
  %o4 = or i1 %o3, %special
  %o5 = zext i1 %o4 to i32
  %now = or i32 %before, %o5
  %nextx = add i64 %x, 1
  %morex = icmp slt i64 %nextx, %sr
  br i1 %morex, label %item, label %end
end:
  %nexty = add i64 %y, 1
  %morey = icmp slt i64 %nexty, %rows
  br i1 %morey, label %row, label %done
done:
  ret i32 %now
}

define i32 @fma_double(ptr noalias %a, i64 %sa, ptr noalias %b, i64 %sb, ptr noalias %c, i64 %sc, ptr noalias %r,
                       i64 %rows, i64 %sr) {
entry:
  br label %row
row:
  %y = phi i64 [0, %entry], [%nexty, %end]
  %odd = phi i32 [0, %entry], [%now, %end]
  %ya = mul i64 %y, %sa
  %ra = getelementptr double, ptr %a, i64 %ya
  %yb = mul i64 %y, %sb
  %rb = getelementptr double, ptr %b, i64 %yb
  %yc = mul i64 %y, %sc
  %rc = getelementptr double, ptr %c, i64 %yc
  %yr = mul i64 %y, %sr
  %rr = getelementptr double, ptr %r, i64 %yr
  br label %item
item:
  %x = phi i64 [0, %row], [%nextx, %item]
  %before = phi i32 [%odd, %row], [%now, %item]
  %pa = getelementptr double, ptr %ra, i64 %x
  %va = load double, ptr %pa
  %pb = getelementptr double, ptr %rb, i64 %x
  %vb = load double, ptr %pb
  %pc = getelementptr double, ptr %rc, i64 %x
  %vc = load double, ptr %pc
  %pr = getelementptr double, ptr %rr, i64 %x
  %vr = call double @llvm.fma.f64(double %va, double %vb, double %vc)
  store double %vr, ptr %pr
  %br = bitcast double %vr to i64
  %sizer = and i64 %br, 9223372036854775807
  %special = icmp uge i64 %sizer, 9218868437227405312
  %o5 = zext i1 %special to i32
  %now = or i32 %before, %o5
  %nextx = add i64 %x, 1
  %morex = icmp slt i64 %nextx, %sr
  br i1 %morex, label %item, label %end
end:
  %nexty = add i64 %y, 1
  %morey = icmp slt i64 %nexty, %rows
  br i1 %morey, label %row, label %done
done:
  ret i32 %now
}
