"""A linear layer with its activation, max(A @ B + bias, 0), and three ways to run it."""

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f16, f32, maximum, sum

M, N, K = Size("M"), Size("N"), Size("K")
A, B, bias = Input("A", f16, [M, K]), Input("B", f16, [K, N]), Input("bias", f16, [N])
i, j, k = Var("i"), Var("j"), RDom("k", K)

# What.  The products of two f16 are exact in f32, so that a matrix unit may sum them.
C, D = Func("C"), Func("D")
C[i, j] = sum(f32(A[i, k]) * f32(B[k, j]), over=k)
D[i, j] = f16(maximum(C[i, j] + f32(bias[j]), 0))
linear_relu = Pipeline("linear_relu", inputs=[A, B, bias], outputs={D: [M, N]})

io, jo, ii, ji, ko, ki, t = (Var(n) for n in ("io", "jo", "ii", "ji", "ko", "ki", "t"))

# How, first: two kernels.  C goes through memory.
two_kernels = Schedule(linear_relu)
two_kernels[C].compute_root().tile(i, j, io, jo, ii, ji, 64, 64).gpu_blocks(io)
two_kernels[C].vectorize(ii).vectorize(ji)
two_kernels[C].update(0).tile(i, j, io, jo, ii, ji, 64, 64).reorder(io, jo, k, ii, ji)
two_kernels[C].update(0).gpu_blocks(io).vectorize(ii).vectorize(ji)
two_kernels[D].tile(i, j, io, jo, ii, ji, 64, 64).gpu_blocks(io).vectorize(ii).vectorize(ji)

# How, second: one kernel.  A block computes a tile of C and gives it to D while it is in registers.
fused = Schedule(linear_relu)
fused[D].tile(i, j, io, jo, ii, ji, 64, 64).fuse(io, jo, t).gpu_blocks(t).vectorize(ii).vectorize(
    ji
)
fused[C].compute_at(D, t).vectorize(i).vectorize(j)
fused[C].update(0).reorder(k, i, j).vectorize(i).vectorize(j)

# How, third: K in slices of 64 as well, so that a tile of C grows by products of tiles: on a GPU
# its matrix unit's work, with the next slices on their way.
dots = Schedule(linear_relu)
dots[D].tile(i, j, io, jo, ii, ji, 64, 64).fuse(io, jo, t).gpu_blocks(t)
dots[D].vectorize(ii).vectorize(ji)
dots[C].compute_at(D, t).vectorize(i).vectorize(j)
dots[C].update(0).split(k, ko, ki, 64).reorder(ko, i, j, ki).vectorize(i).vectorize(j).vectorize(ki)
dots[C].update(0).pipeline(ko, stages=3)
