; steps_from_zero: 3 launches in this order
;   x: int32 (10,)
;   1. steps_from_zero_1 over 10: a0 = x, z0 = t1
;   2. steps_from_zero_2 over 1: z0 = t1
;   3. steps_from_zero_3 over 9: a0 = t1 + 4 bytes, a1 = t1, z0 = r1
;   t1: int32 (10,), 40 bytes, written by launches 1, 2, read by launch 3
;   r1: int32 (9,), 36 bytes, written by launch 3, returned

; steps_from_zero_1 for layout 1:a0=s,z0=1;;pa4ga02
define void @"fusec.steps_from_zero_1"(i64 %lo, i64 %hi, ptr noalias readonly %args) nounwind "prefer-vector-width"="128" {
entry:
  %m6 = alloca i64
  %m7 = alloca i64
  %m38 = alloca i64
  %a0.at = getelementptr i8, ptr %args, i64 0
  %a0 = load ptr, ptr %a0.at, align 4
  %a1.at = getelementptr i8, ptr %args, i64 8
  %a1 = load ptr, ptr %a1.at, align 4
  %v4 = icmp sge i64 %lo, %hi
  br i1 %v4, label %done3, label %start1
start1:
  %v5 = mul <16 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>, splat (i64 8)
  store i64 %lo, ptr %m6
  br label %guard8
guard8:
  %v13 = load i64, ptr %m6
  %v14 = add i64 %v13, 16
  %v15 = icmp sle i64 %v14, %hi
  br i1 %v15, label %whole9, label %rest10
whole9:
  %v16 = load i64, ptr %m6
  %v18 = mul i64 %v16, 8
  %v19 = getelementptr i8, ptr %a0, i64 %v18
  %v20 = getelementptr i8, ptr %v19, <16 x i64> %v5
  %v21 = mul i64 8, 16
  %v22 = getelementptr i8, ptr %v19, i64 0
  %v23 = getelementptr i8, ptr %v19, i64 60
  %v24 = load <16 x i32>, ptr %v22, align 4
  %v25 = load <16 x i32>, ptr %v23, align 4
  %v26 = shufflevector <16 x i32> %v24, <16 x i32> %v25, <16 x i32> <i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14, i32 17, i32 19, i32 21, i32 23, i32 25, i32 27, i32 29, i32 31>
  %v27 = mul <16 x i32> %v26, splat (i32 2)
  %v28 = getelementptr [4 x i8], ptr %a1, i64 %v16
  store <16 x i32> %v27, ptr %v28, align 4
  br label %end17
end17:
  %v29 = add i64 %v16, 16
  store i64 %v29, ptr %m6
  %v30 = add i64 %v29, 16
  %v31 = icmp sle i64 %v30, %hi
  br i1 %v31, label %whole9, label %rest10
rest10:
  %v32 = load i64, ptr %m6
  %v33 = sub i64 %hi, %v32
  store i64 %v33, ptr %m7
  %v34 = icmp ne i64 %v33, 0
  br i1 %v34, label %partial11, label %after12
partial11:
  %v35 = load i64, ptr %m6
  %v36 = load i64, ptr %m7
  %v37 = add i64 %v35, %v36
  store i64 %v35, ptr %m38
  br label %loop39
loop39:
  %v41 = load i64, ptr %m38
  %v43 = mul i64 %v41, 8
  %v44 = getelementptr i8, ptr %a0, i64 %v43
  %v45 = load i32, ptr %v44, align 4
  %v46 = mul i32 %v45, 2
  %v47 = getelementptr [4 x i8], ptr %a1, i64 %v41
  store i32 %v46, ptr %v47, align 4
  br label %end42
end42:
  %v48 = add i64 %v41, 1
  store i64 %v48, ptr %m38
  %v49 = icmp slt i64 %v48, %v37
  br i1 %v49, label %loop39, label %after40
after40:
  store i64 %v37, ptr %m6
  br label %after12
after12:
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
