; steps_from_zero: 3 launches in this order
;   x: int32 (10,)
;   1. steps_from_zero_1 over 10: a0 = x, stride 0 of a0 = 8, z0 = t1
;   2. steps_from_zero_2 over 1: z0 = t1
;   3. steps_from_zero_3 over 9: a0 = t1 + 4 bytes, a1 = t1, z0 = r1
;   t1: int32 (10,), 40 bytes, written by launches 1, 2, read by launch 3
;   r1: int32 (9,), 36 bytes, written by launch 3, returned

; steps_from_zero_1 for layout 1:a0=s,z0=1;;pa4
define internal <16 x i32> @strided.i32.16(ptr %base, i64 %stride) noinline nounwind {
  switch i64 %stride, label %any [i64 -4, label %back i64 8, label %by2 i64 -8, label %back2 i64 12, label %by3 i64 -12, label %back3 i64 16, label %by4 i64 -16, label %back4]
back:
  %start = getelementptr i8, ptr %base, i64 -60
  %forwards = load <16 x i32>, ptr %start, align 4
  %backwards = shufflevector <16 x i32> %forwards, <16 x i32> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  ret <16 x i32> %backwards
by2:
  %abase2.0 = getelementptr i8, ptr %base, i64 0
  %wbase2.0 = load <16 x i32>, ptr %abase2.0, align 4
  %abase2.1 = getelementptr i8, ptr %base, i64 60
  %wbase2.1 = load <16 x i32>, ptr %abase2.1, align 4
  %vbase2.1 = shufflevector <16 x i32> %wbase2.0, <16 x i32> %wbase2.1, <16 x i32> <i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14, i32 17, i32 19, i32 21, i32 23, i32 25, i32 27, i32 29, i32 31>
  ret <16 x i32> %vbase2.1
back2:
  %start2 = getelementptr i8, ptr %base, i64 -120
  %astart2.0 = getelementptr i8, ptr %start2, i64 0
  %wstart2.0 = load <16 x i32>, ptr %astart2.0, align 4
  %astart2.1 = getelementptr i8, ptr %start2, i64 60
  %wstart2.1 = load <16 x i32>, ptr %astart2.1, align 4
  %vstart2.1 = shufflevector <16 x i32> %wstart2.0, <16 x i32> %wstart2.1, <16 x i32> <i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14, i32 17, i32 19, i32 21, i32 23, i32 25, i32 27, i32 29, i32 31>
  %b2 = shufflevector <16 x i32> %vstart2.1, <16 x i32> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  ret <16 x i32> %b2
by3:
  %abase3.0 = getelementptr i8, ptr %base, i64 0
  %wbase3.0 = load <16 x i32>, ptr %abase3.0, align 4
  %abase3.1 = getelementptr i8, ptr %base, i64 64
  %wbase3.1 = load <16 x i32>, ptr %abase3.1, align 4
  %abase3.2 = getelementptr i8, ptr %base, i64 120
  %wbase3.2 = load <16 x i32>, ptr %abase3.2, align 4
  %vbase3.1 = shufflevector <16 x i32> %wbase3.0, <16 x i32> %wbase3.1, <16 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21, i32 24, i32 27, i32 30, i32 15, i32 15, i32 15, i32 15, i32 15>
  %vbase3.2 = shufflevector <16 x i32> %vbase3.1, <16 x i32> %wbase3.2, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 19, i32 22, i32 25, i32 28, i32 31>
  ret <16 x i32> %vbase3.2
back3:
  %start3 = getelementptr i8, ptr %base, i64 -180
  %astart3.0 = getelementptr i8, ptr %start3, i64 0
  %wstart3.0 = load <16 x i32>, ptr %astart3.0, align 4
  %astart3.1 = getelementptr i8, ptr %start3, i64 64
  %wstart3.1 = load <16 x i32>, ptr %astart3.1, align 4
  %astart3.2 = getelementptr i8, ptr %start3, i64 120
  %wstart3.2 = load <16 x i32>, ptr %astart3.2, align 4
  %vstart3.1 = shufflevector <16 x i32> %wstart3.0, <16 x i32> %wstart3.1, <16 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 18, i32 21, i32 24, i32 27, i32 30, i32 15, i32 15, i32 15, i32 15, i32 15>
  %vstart3.2 = shufflevector <16 x i32> %vstart3.1, <16 x i32> %wstart3.2, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 19, i32 22, i32 25, i32 28, i32 31>
  %b3 = shufflevector <16 x i32> %vstart3.2, <16 x i32> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  ret <16 x i32> %b3
by4:
  %abase4.0 = getelementptr i8, ptr %base, i64 0
  %wbase4.0 = load <16 x i32>, ptr %abase4.0, align 4
  %abase4.1 = getelementptr i8, ptr %base, i64 64
  %wbase4.1 = load <16 x i32>, ptr %abase4.1, align 4
  %abase4.2 = getelementptr i8, ptr %base, i64 128
  %wbase4.2 = load <16 x i32>, ptr %abase4.2, align 4
  %abase4.3 = getelementptr i8, ptr %base, i64 180
  %wbase4.3 = load <16 x i32>, ptr %abase4.3, align 4
  %vbase4.1 = shufflevector <16 x i32> %wbase4.0, <16 x i32> %wbase4.1, <16 x i32> <i32 0, i32 4, i32 8, i32 12, i32 16, i32 20, i32 24, i32 28, i32 15, i32 15, i32 15, i32 15, i32 15, i32 15, i32 15, i32 15>
  %vbase4.2 = shufflevector <16 x i32> %vbase4.1, <16 x i32> %wbase4.2, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 20, i32 24, i32 28, i32 12, i32 13, i32 14, i32 15>
  %vbase4.3 = shufflevector <16 x i32> %vbase4.2, <16 x i32> %wbase4.3, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 19, i32 23, i32 27, i32 31>
  ret <16 x i32> %vbase4.3
back4:
  %start4 = getelementptr i8, ptr %base, i64 -240
  %astart4.0 = getelementptr i8, ptr %start4, i64 0
  %wstart4.0 = load <16 x i32>, ptr %astart4.0, align 4
  %astart4.1 = getelementptr i8, ptr %start4, i64 64
  %wstart4.1 = load <16 x i32>, ptr %astart4.1, align 4
  %astart4.2 = getelementptr i8, ptr %start4, i64 128
  %wstart4.2 = load <16 x i32>, ptr %astart4.2, align 4
  %astart4.3 = getelementptr i8, ptr %start4, i64 180
  %wstart4.3 = load <16 x i32>, ptr %astart4.3, align 4
  %vstart4.1 = shufflevector <16 x i32> %wstart4.0, <16 x i32> %wstart4.1, <16 x i32> <i32 0, i32 4, i32 8, i32 12, i32 16, i32 20, i32 24, i32 28, i32 15, i32 15, i32 15, i32 15, i32 15, i32 15, i32 15, i32 15>
  %vstart4.2 = shufflevector <16 x i32> %vstart4.1, <16 x i32> %wstart4.2, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 20, i32 24, i32 28, i32 12, i32 13, i32 14, i32 15>
  %vstart4.3 = shufflevector <16 x i32> %vstart4.2, <16 x i32> %wstart4.3, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 19, i32 23, i32 27, i32 31>
  %b4 = shufflevector <16 x i32> %vstart4.3, <16 x i32> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  ret <16 x i32> %b4
any:
  %d0 = mul i64 %stride, 0
  %p0 = getelementptr i8, ptr %base, i64 %d0
  %e0 = load i32, ptr %p0, align 4
  %v0 = insertelement <16 x i32> poison, i32 %e0, i64 0
  %d1 = mul i64 %stride, 1
  %p1 = getelementptr i8, ptr %base, i64 %d1
  %e1 = load i32, ptr %p1, align 4
  %v1 = insertelement <16 x i32> %v0, i32 %e1, i64 1
  %d2 = mul i64 %stride, 2
  %p2 = getelementptr i8, ptr %base, i64 %d2
  %e2 = load i32, ptr %p2, align 4
  %v2 = insertelement <16 x i32> %v1, i32 %e2, i64 2
  %d3 = mul i64 %stride, 3
  %p3 = getelementptr i8, ptr %base, i64 %d3
  %e3 = load i32, ptr %p3, align 4
  %v3 = insertelement <16 x i32> %v2, i32 %e3, i64 3
  %d4 = mul i64 %stride, 4
  %p4 = getelementptr i8, ptr %base, i64 %d4
  %e4 = load i32, ptr %p4, align 4
  %v4 = insertelement <16 x i32> %v3, i32 %e4, i64 4
  %d5 = mul i64 %stride, 5
  %p5 = getelementptr i8, ptr %base, i64 %d5
  %e5 = load i32, ptr %p5, align 4
  %v5 = insertelement <16 x i32> %v4, i32 %e5, i64 5
  %d6 = mul i64 %stride, 6
  %p6 = getelementptr i8, ptr %base, i64 %d6
  %e6 = load i32, ptr %p6, align 4
  %v6 = insertelement <16 x i32> %v5, i32 %e6, i64 6
  %d7 = mul i64 %stride, 7
  %p7 = getelementptr i8, ptr %base, i64 %d7
  %e7 = load i32, ptr %p7, align 4
  %v7 = insertelement <16 x i32> %v6, i32 %e7, i64 7
  %d8 = mul i64 %stride, 8
  %p8 = getelementptr i8, ptr %base, i64 %d8
  %e8 = load i32, ptr %p8, align 4
  %v8 = insertelement <16 x i32> %v7, i32 %e8, i64 8
  %d9 = mul i64 %stride, 9
  %p9 = getelementptr i8, ptr %base, i64 %d9
  %e9 = load i32, ptr %p9, align 4
  %v9 = insertelement <16 x i32> %v8, i32 %e9, i64 9
  %d10 = mul i64 %stride, 10
  %p10 = getelementptr i8, ptr %base, i64 %d10
  %e10 = load i32, ptr %p10, align 4
  %v10 = insertelement <16 x i32> %v9, i32 %e10, i64 10
  %d11 = mul i64 %stride, 11
  %p11 = getelementptr i8, ptr %base, i64 %d11
  %e11 = load i32, ptr %p11, align 4
  %v11 = insertelement <16 x i32> %v10, i32 %e11, i64 11
  %d12 = mul i64 %stride, 12
  %p12 = getelementptr i8, ptr %base, i64 %d12
  %e12 = load i32, ptr %p12, align 4
  %v12 = insertelement <16 x i32> %v11, i32 %e12, i64 12
  %d13 = mul i64 %stride, 13
  %p13 = getelementptr i8, ptr %base, i64 %d13
  %e13 = load i32, ptr %p13, align 4
  %v13 = insertelement <16 x i32> %v12, i32 %e13, i64 13
  %d14 = mul i64 %stride, 14
  %p14 = getelementptr i8, ptr %base, i64 %d14
  %e14 = load i32, ptr %p14, align 4
  %v14 = insertelement <16 x i32> %v13, i32 %e14, i64 14
  %d15 = mul i64 %stride, 15
  %p15 = getelementptr i8, ptr %base, i64 %d15
  %e15 = load i32, ptr %p15, align 4
  %v15 = insertelement <16 x i32> %v14, i32 %e15, i64 15
  ret <16 x i32> %v15
}
define void @"fusec.steps_from_zero_1"(i64 %lo, i64 %hi, ptr noalias readonly %args) nounwind "prefer-vector-width"="128" {
entry:
  %m8 = alloca i64
  %m9 = alloca i64
  %m36 = alloca i64
  %a0.at = getelementptr i8, ptr %args, i64 0
  %a0 = load ptr, ptr %a0.at, align 4
  %a1.at = getelementptr i8, ptr %args, i64 8
  %a1 = load i64, ptr %a1.at, align 4
  %a2.at = getelementptr i8, ptr %args, i64 16
  %a2 = load ptr, ptr %a2.at, align 4
  %v4 = icmp sge i64 %lo, %hi
  br i1 %v4, label %done3, label %start1
start1:
  %v5 = insertelement <16 x i64> poison, i64 %a1, i64 0
  %v6 = shufflevector <16 x i64> %v5, <16 x i64> poison, <16 x i32> zeroinitializer
  %v7 = mul <16 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>, %v6
  store i64 %lo, ptr %m8
  br label %guard10
guard10:
  %v15 = load i64, ptr %m8
  %v16 = add i64 %v15, 16
  %v17 = icmp sle i64 %v16, %hi
  br i1 %v17, label %whole11, label %rest12
whole11:
  %v18 = load i64, ptr %m8
  %v20 = mul i64 %v18, %a1
  %v21 = getelementptr i8, ptr %a0, i64 %v20
  %v22 = getelementptr i8, ptr %v21, <16 x i64> %v7
  %v23 = mul i64 %a1, 16
  %v24 = call <16 x i32> @strided.i32.16(ptr %v21, i64 %a1)
  %v25 = mul <16 x i32> %v24, splat (i32 2)
  %v26 = getelementptr [4 x i8], ptr %a2, i64 %v18
  store <16 x i32> %v25, ptr %v26, align 4
  br label %end19
end19:
  %v27 = add i64 %v18, 16
  store i64 %v27, ptr %m8
  %v28 = add i64 %v27, 16
  %v29 = icmp sle i64 %v28, %hi
  br i1 %v29, label %whole11, label %rest12
rest12:
  %v30 = load i64, ptr %m8
  %v31 = sub i64 %hi, %v30
  store i64 %v31, ptr %m9
  %v32 = icmp ne i64 %v31, 0
  br i1 %v32, label %partial13, label %after14
partial13:
  %v33 = load i64, ptr %m8
  %v34 = load i64, ptr %m9
  %v35 = add i64 %v33, %v34
  store i64 %v33, ptr %m36
  br label %loop37
loop37:
  %v39 = load i64, ptr %m36
  %v41 = mul i64 %v39, %a1
  %v42 = getelementptr i8, ptr %a0, i64 %v41
  %v43 = load i32, ptr %v42, align 4
  %v44 = mul i32 %v43, 2
  %v45 = getelementptr [4 x i8], ptr %a2, i64 %v39
  store i32 %v44, ptr %v45, align 4
  br label %end40
end40:
  %v46 = add i64 %v39, 1
  store i64 %v46, ptr %m36
  %v47 = icmp slt i64 %v46, %v35
  br i1 %v47, label %loop37, label %after38
after38:
  store i64 %v35, ptr %m8
  br label %after14
after14:
  br label %done3
done3:
  ret void
}
!0 = !{i32 1}
; steps_from_zero_2 for layout 1:z0=1;;pa4
define void @"fusec.steps_from_zero_2"(i64 %lo, i64 %hi, ptr noalias readonly %args) nounwind "prefer-vector-width"="128" {
entry:
  %m5 = alloca i64
  %m6 = alloca i64
  %m27 = alloca i64
  %a0.at = getelementptr i8, ptr %args, i64 0
  %a0 = load ptr, ptr %a0.at, align 4
  %v4 = icmp sge i64 %lo, %hi
  br i1 %v4, label %done3, label %start1
start1:
  store i64 %lo, ptr %m5
  br label %guard7
guard7:
  %v12 = load i64, ptr %m5
  %v13 = add i64 %v12, 16
  %v14 = icmp sle i64 %v13, %hi
  br i1 %v14, label %whole8, label %rest9
whole8:
  %v15 = load i64, ptr %m5
  %v17 = getelementptr [4 x i8], ptr %a0, i64 %v15
  store <16 x i32> splat (i32 0), ptr %v17, align 4
  br label %end16
end16:
  %v18 = add i64 %v15, 16
  store i64 %v18, ptr %m5
  %v19 = add i64 %v18, 16
  %v20 = icmp sle i64 %v19, %hi
  br i1 %v20, label %whole8, label %rest9
rest9:
  %v21 = load i64, ptr %m5
  %v22 = sub i64 %hi, %v21
  store i64 %v22, ptr %m6
  %v23 = icmp ne i64 %v22, 0
  br i1 %v23, label %partial10, label %after11
partial10:
  %v24 = load i64, ptr %m5
  %v25 = load i64, ptr %m6
  %v26 = add i64 %v24, %v25
  store i64 %v24, ptr %m27
  br label %loop28
loop28:
  %v30 = load i64, ptr %m27
  %v32 = getelementptr [4 x i8], ptr %a0, i64 %v30
  store i32 0, ptr %v32, align 4
  br label %end31
end31:
  %v33 = add i64 %v30, 1
  store i64 %v33, ptr %m27
  %v34 = icmp slt i64 %v33, %v26
  br i1 %v34, label %loop28, label %after29
after29:
  store i64 %v26, ptr %m5
  br label %after11
after11:
  br label %done3
done3:
  ret void
}
; steps_from_zero_3 for layout 1:a0=1,a1=1,z0=1;;pa4
define void @"fusec.steps_from_zero_3"(i64 %lo, i64 %hi, ptr noalias readonly %args) nounwind "prefer-vector-width"="128" {
entry:
  %m5 = alloca i64
  %m6 = alloca i64
  %m32 = alloca i64
  %a0.at = getelementptr i8, ptr %args, i64 0
  %a0 = load ptr, ptr %a0.at, align 4
  %a1.at = getelementptr i8, ptr %args, i64 8
  %a1 = load ptr, ptr %a1.at, align 4
  %a2.at = getelementptr i8, ptr %args, i64 16
  %a2 = load ptr, ptr %a2.at, align 4
  %v4 = icmp sge i64 %lo, %hi
  br i1 %v4, label %done3, label %start1
start1:
  store i64 %lo, ptr %m5
  br label %guard7
guard7:
  %v12 = load i64, ptr %m5
  %v13 = add i64 %v12, 16
  %v14 = icmp sle i64 %v13, %hi
  br i1 %v14, label %whole8, label %rest9
whole8:
  %v15 = load i64, ptr %m5
  %v17 = getelementptr [4 x i8], ptr %a0, i64 %v15
  %v18 = load <16 x i32>, ptr %v17, align 4
  %v19 = getelementptr [4 x i8], ptr %a1, i64 %v15
  %v20 = load <16 x i32>, ptr %v19, align 4
  %v21 = sub <16 x i32> %v18, %v20
  %v22 = getelementptr [4 x i8], ptr %a2, i64 %v15
  store <16 x i32> %v21, ptr %v22, align 4
  br label %end16
end16:
  %v23 = add i64 %v15, 16
  store i64 %v23, ptr %m5
  %v24 = add i64 %v23, 16
  %v25 = icmp sle i64 %v24, %hi
  br i1 %v25, label %whole8, label %rest9
rest9:
  %v26 = load i64, ptr %m5
  %v27 = sub i64 %hi, %v26
  store i64 %v27, ptr %m6
  %v28 = icmp ne i64 %v27, 0
  br i1 %v28, label %partial10, label %after11
partial10:
  %v29 = load i64, ptr %m5
  %v30 = load i64, ptr %m6
  %v31 = add i64 %v29, %v30
  store i64 %v29, ptr %m32
  br label %loop33
loop33:
  %v35 = load i64, ptr %m32
  %v37 = getelementptr [4 x i8], ptr %a0, i64 %v35
  %v38 = load i32, ptr %v37, align 4
  %v39 = getelementptr [4 x i8], ptr %a1, i64 %v35
  %v40 = load i32, ptr %v39, align 4
  %v41 = sub i32 %v38, %v40
  %v42 = getelementptr [4 x i8], ptr %a2, i64 %v35
  store i32 %v41, ptr %v42, align 4
  br label %end36
end36:
  %v43 = add i64 %v35, 1
  store i64 %v43, ptr %m32
  %v44 = icmp slt i64 %v43, %v31
  br i1 %v44, label %loop33, label %after34
after34:
  store i64 %v31, ptr %m5
  br label %after11
after11:
  br label %done3
done3:
  ret void
}
