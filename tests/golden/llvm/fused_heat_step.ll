; heat_step: 2 launches in this order
;   u: float32 (100,), written by launch 2
;   rate: 0.25, a number
;   1. heat_step_1 over 98: a0 = u + 4 bytes, a1 = u + 8 bytes, a2 = u, z0 = t1, s0 = 0.25
;   2. heat_step_2 over 98: a0 = t1, z0 = u + 4 bytes
;   t1: float32 (98,), 392 bytes, written by launch 1, read by launch 2

; heat_step_1 for layout 1:a0=1,a1=1,a2=1,z0=1;;pa4
define void @"fusec.heat_step_1"(i64 %lo, i64 %hi, ptr noalias readonly %args) nounwind "prefer-vector-width"="128" {
entry:
  %m5 = alloca i64
  %m6 = alloca i64
  %m40 = alloca i64
  %a0.at = getelementptr i8, ptr %args, i64 0
  %a0 = load ptr, ptr %a0.at, align 4
  %a1.at = getelementptr i8, ptr %args, i64 8
  %a1 = load ptr, ptr %a1.at, align 4
  %a2.at = getelementptr i8, ptr %args, i64 16
  %a2 = load ptr, ptr %a2.at, align 4
  %a3.at = getelementptr i8, ptr %args, i64 24
  %a3 = load ptr, ptr %a3.at, align 4
  %a4.at = getelementptr i8, ptr %args, i64 32
  %a4 = load float, ptr %a4.at, align 4
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
  %v18 = load <16 x float>, ptr %v17, align 4
  %v19 = getelementptr [4 x i8], ptr %a1, i64 %v15
  %v20 = load <16 x float>, ptr %v19, align 4
  %v21 = getelementptr [4 x i8], ptr %a2, i64 %v15
  %v22 = load <16 x float>, ptr %v21, align 4
  %v23 = fmul <16 x float> %v18, splat (float 0x4000000000000000)
  %v24 = fsub <16 x float> %v20, %v23
  %v25 = fadd <16 x float> %v24, %v22
  %v26 = insertelement <16 x float> poison, float %a4, i64 0
  %v27 = shufflevector <16 x float> %v26, <16 x float> poison, <16 x i32> zeroinitializer
  %v28 = fmul <16 x float> %v27, %v25
  %v29 = fadd <16 x float> %v18, %v28
  %v30 = getelementptr [4 x i8], ptr %a3, i64 %v15
  store <16 x float> %v29, ptr %v30, align 4
  br label %end16
end16:
  %v31 = add i64 %v15, 16
  store i64 %v31, ptr %m5
  %v32 = add i64 %v31, 16
  %v33 = icmp sle i64 %v32, %hi
  br i1 %v33, label %whole8, label %rest9
rest9:
  %v34 = load i64, ptr %m5
  %v35 = sub i64 %hi, %v34
  store i64 %v35, ptr %m6
  %v36 = icmp ne i64 %v35, 0
  br i1 %v36, label %partial10, label %after11
partial10:
  %v37 = load i64, ptr %m5
  %v38 = load i64, ptr %m6
  %v39 = add i64 %v37, %v38
  store i64 %v37, ptr %m40
  br label %loop41
loop41:
  %v43 = load i64, ptr %m40
  %v45 = getelementptr [4 x i8], ptr %a0, i64 %v43
  %v46 = load float, ptr %v45, align 4
  %v47 = getelementptr [4 x i8], ptr %a1, i64 %v43
  %v48 = load float, ptr %v47, align 4
  %v49 = getelementptr [4 x i8], ptr %a2, i64 %v43
  %v50 = load float, ptr %v49, align 4
  %v51 = fmul float %v46, 0x4000000000000000
  %v52 = fsub float %v48, %v51
  %v53 = fadd float %v52, %v50
  %v54 = fmul float %a4, %v53
  %v55 = fadd float %v46, %v54
  %v56 = getelementptr [4 x i8], ptr %a3, i64 %v43
  store float %v55, ptr %v56, align 4
  br label %end44
end44:
  %v57 = add i64 %v43, 1
  store i64 %v57, ptr %m40
  %v58 = icmp slt i64 %v57, %v39
  br i1 %v58, label %loop41, label %after42
after42:
  store i64 %v39, ptr %m5
  br label %after11
after11:
  br label %done3
done3:
  ret void
}
!0 = !{i32 1}
; heat_step_2 for layout 1:a0=1,z0=1;;pa4
define void @"fusec.heat_step_2"(i64 %lo, i64 %hi, ptr noalias readonly %args) nounwind "prefer-vector-width"="128" {
entry:
  %m5 = alloca i64
  %m6 = alloca i64
  %m29 = alloca i64
  %a0.at = getelementptr i8, ptr %args, i64 0
  %a0 = load ptr, ptr %a0.at, align 4
  %a1.at = getelementptr i8, ptr %args, i64 8
  %a1 = load ptr, ptr %a1.at, align 4
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
  %v18 = load <16 x float>, ptr %v17, align 4
  %v19 = getelementptr [4 x i8], ptr %a1, i64 %v15
  store <16 x float> %v18, ptr %v19, align 4
  br label %end16
end16:
  %v20 = add i64 %v15, 16
  store i64 %v20, ptr %m5
  %v21 = add i64 %v20, 16
  %v22 = icmp sle i64 %v21, %hi
  br i1 %v22, label %whole8, label %rest9
rest9:
  %v23 = load i64, ptr %m5
  %v24 = sub i64 %hi, %v23
  store i64 %v24, ptr %m6
  %v25 = icmp ne i64 %v24, 0
  br i1 %v25, label %partial10, label %after11
partial10:
  %v26 = load i64, ptr %m5
  %v27 = load i64, ptr %m6
  %v28 = add i64 %v26, %v27
  store i64 %v26, ptr %m29
  br label %loop30
loop30:
  %v32 = load i64, ptr %m29
  %v34 = getelementptr [4 x i8], ptr %a0, i64 %v32
  %v35 = load float, ptr %v34, align 4
  %v36 = getelementptr [4 x i8], ptr %a1, i64 %v32
  store float %v35, ptr %v36, align 4
  br label %end33
end33:
  %v37 = add i64 %v32, 1
  store i64 %v37, ptr %m29
  %v38 = icmp slt i64 %v37, %v28
  br i1 %v38, label %loop30, label %after31
after31:
  store i64 %v28, ptr %m5
  br label %after11
after11:
  br label %done3
done3:
  ret void
}
