"""Programs of a threadgroup in Metal that are right, and the changes that spoil them."""

from fibers_cuda_texts import AT, Bug

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
TREE = (
    HEAD
    + """
kernel void tree(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], constant int& n [[buffer(2)]],
                 uint t [[thread_position_in_threadgroup]], uint b [[threadgroup_position_in_grid]],
                 uint first [[thread_position_in_grid]], uint stride [[threads_per_grid]]) {
    threadgroup float s[128];
    float sum = 0.0f;
    for (int i = int(first); i < n; i += int(stride)) sum += x[i];
    s[t] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // filled
    for (uint o = 64; o > 0; o >>= 1) {
        if (t < o) s[t] += s[t + o];
        threadgroup_barrier(mem_flags::mem_threadgroup);  // in the loop
    }
    if (t == 0) out[b] = s[0];
}
"""
)
SHUFFLES = (
    HEAD
    + """
struct fusec_sizes { int n; };
kernel void shuffles(device const int* x [[buffer(0)]], device int* out [[buffer(1)]], device uint* votes [[buffer(2)]],
                     constant fusec_sizes& sizes [[buffer(3)]], threadgroup int* s [[threadgroup(0)]],
                     uint t [[thread_index_in_threadgroup]], uint b [[threadgroup_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]],
                     uint groups [[simdgroups_per_threadgroup]], uint i [[thread_position_in_grid]]) {
    // how many; "}" is no brace
    threadgroup atomic_uint negative;
    if (t == 0) atomic_store_explicit(&negative, 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);  // zero
    int sum = int(i) < sizes.n ? x[i] : 0;
    if (sum < 0) atomic_fetch_add_explicit(&negative, 1u, memory_order_relaxed);
    for (ushort o = 16; o > 0; o >>= 1) sum += simd_shuffle_down(sum, o);
    if (lane == 0) s[group] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);  // summed
    if (group == 0) {
        const int mine = lane < groups ? s[lane] : 0;
        sum = mine;
        for (ushort o = 16; o > 0; o >>= 1) sum += simd_shuffle_xor(sum, o);
        const uint odd = uint(simd_vote::vote_t(simd_ballot(mine & 1)));
        const bool all = simd_all(lane >= groups || mine != 0), any = simd_any(mine < 0);
        if (t == 0) {
            out[b] = sum;
            const uint count = atomic_load_explicit(&negative, memory_order_relaxed);
            votes[b] = odd | uint(all) << 4 | uint(any) << 5 | count << 8;
        }
    }
}
"""
)
PHASES = (
    HEAD
    + """
struct pair { float value; int at; };
kernel void largest(device const float* x [[buffer(0)]], device pair* found [[buffer(1)]],
                    constant int& n [[buffer(2)]], uint t [[thread_position_in_threadgroup]],
                    uint b [[threadgroup_position_in_grid]],
                    uint first [[thread_position_in_grid]], uint stride [[threads_per_grid]]) {
    threadgroup pair s[64];
    pair best = pair{x[0], 0};
    for (int i = int(first); i < n; i += int(stride))
        if (x[i] > best.value || (x[i] == best.value && i < best.at)) best = pair{x[i], i};
    s[t] = best;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint o = 32; o > 0; o >>= 1) {
        if (t < o) {
            const pair other = s[t + o];
            if (other.value > best.value || (other.value == best.value && other.at < best.at)) best = other;
            s[t] = best;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (t != 0) return;
    // one for each threadgroup
    found[b] = best;
}
kernel void finish(device const pair* found [[buffer(0)]], device int* out [[buffer(1)]], constant int& n [[buffer(2)]],
                   uint t [[thread_position_in_grid]]) {
    if (t != 0) return;
    pair best = found[0];
    for (int i = 1; i < n; ++i) {
        const pair other = found[i];
        if (other.value > best.value || (other.value == best.value && other.at < best.at)) best = other;
    }
    out[0] = best.at;
}
"""
)
TRANSPOSE = (
    HEAD
    + """
kernel void transpose(device const short* x [[buffer(0)]], device short* out [[buffer(1)]],
                      constant int& rows [[buffer(2)]], constant int& columns [[buffer(3)]],
                      uint2 t [[thread_position_in_threadgroup]], uint2 b [[threadgroup_position_in_grid]]) {
    threadgroup short tile[16][17];
    int r = int(b.y * 16 + t.y), c = int(b.x * 16 + t.x);
    if (r < rows && c < columns) tile[t.y][t.x] = x[r * columns + c];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    r = int(b.x * 16 + t.y);
    c = int(b.y * 16 + t.x);
    if (r < columns && c < rows) out[r * rows + c] = tile[t.x][t.y];
}
"""
)
SCAN = (
    HEAD
    + """
kernel void scan(device const int* x [[buffer(0)]], device int* out [[buffer(1)]], constant int& n [[buffer(2)]],
                 uint t [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                 uint group [[simdgroup_index_in_threadgroup]]) {
    threadgroup int s[4];
    int carry = 0;
    for (int start = 0; start < n; start += 128) {
        const int i = start + int(t);
        int sum = i < n ? x[i] : 0;
        for (ushort o = 1; o < 32; o <<= 1) {
            const int before = simd_shuffle_up(sum, o);
            if (lane >= o) sum += before;
        }
        if (lane == 31) s[group] = sum;
        threadgroup_barrier(mem_flags::mem_threadgroup);  // filled
        int total = 0;
        for (uint g = 0; g < 4; ++g) {
            if (g < group) sum += s[g];
            total += s[g];
        }
        if (i < n) out[i] = sum + carry;
        carry += total;
        threadgroup_barrier(mem_flags::mem_threadgroup);  // read
    }
}
"""
)
VECTORS = (
    HEAD
    + """
struct alignas(16) four { float v[4]; };
kernel void vectors(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], constant int& n [[buffer(2)]],
                    uint t [[thread_position_in_threadgroup]]) {
    threadgroup alignas(16) float s[128];
    if (4 * int(t) + 4 <= n) {
        const device four* const from = (const device four*)(x + 4 * t);
        threadgroup four* const to = (threadgroup four*)(s + 4 * t);
        for (int k = 0; k < 4; ++k) to->v[k] = from->v[k];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const uint other = t ^ 1;
    if (4 * int(t) + 4 <= n && 4 * int(other) + 4 <= n)
        for (int k = 0; k < 4; ++k) out[4 * t + k] = ((threadgroup four*)(s + 4 * other))->v[k];
}
"""
)
PROGRAMS = {
    "tree": TREE, "shuffles": SHUFFLES, "largest": PHASES, "transpose": TRANSPOSE, "scan": SCAN, "vectors": VECTORS,
}  # fmt: skip

FILLED = "threadgroup_barrier(mem_flags::mem_threadgroup);  // filled"
IN_LOOP = "threadgroup_barrier(mem_flags::mem_threadgroup);  // in the loop"
BUGS = [
    Bug(
        "missing barrier after the store",
        "tree",
        FILLED,
        "",
        r"(race|uninitialised memory).* of s\b.*at bug\d+.metal:\d",
    ),
    Bug(
        "missing barrier in the loop",
        "tree",
        IN_LOOP,
        "",
        rf"race at byte \d+ of s: {AT} writes at bug\d+.metal:13 and {AT} reads at bug\d+.metal:13 without a barrier",
    ),
    Bug(
        "barrier that orders no memory",
        "tree",
        IN_LOOP,
        "threadgroup_barrier(mem_flags::mem_none);",
        r"race at byte \d+ of s: .*:13 .*:13",
    ),
    Bug(
        "barrier that orders other memory",
        "tree",
        IN_LOOP,
        "threadgroup_barrier(mem_flags::mem_device);",
        r"race at byte \d+ of s: .*:13 .*:13",
    ),
    Bug(
        "missing barrier before memory is used again",
        "scan",
        "threadgroup_barrier(mem_flags::mem_threadgroup);  // read",
        "",
        r"race at byte \d+ of s: .*:16 .*:21",
    ),
    Bug(
        "barrier in divergent flow",
        "tree",
        f"if (t < o) s[t] += s[t + o];\n        {IN_LOOP}",
        f"if (t < o) {{ s[t] += s[t + o];\n        {IN_LOOP}\n }}",
        rf"barrier in divergent flow: {AT} waits at threadgroup_barrier in line 14, {AT} has ended",
    ),
    Bug(
        "return before a barrier",
        "tree",
        "    s[t] = sum;",
        "    if (t >= 100) return;\n    s[t] = sum;",
        rf"barrier in divergent flow: {AT} waits at threadgroup_barrier in line 12, {AT} has ended",
    ),
    Bug(
        "lanes that returned before a shuffle",
        "scan",
        "int carry = 0;",
        "int carry = 0;\n    if (t >= 120) return;",
        rf"barrier in divergent flow: {AT} waits at threadgroup_barrier in line 18, thread 120 .* has ended",
    ),
    Bug(
        "shuffle down to lanes that ended",
        "shuffles",
        "for (ushort o = 16; o > 0; o >>= 1) sum += simd_shuffle_down",
        "if (t >= 120) return;\n    for (ushort o = 16; o > 0; o >>= 1) sum += simd_shuffle_down",
        rf"shuffle from an inactive lane: {AT} reads lane 24, which has ended, at simd_shuffle_down in line 17",
    ),
    Bug(
        "SIMD-group function in divergent flow",
        "shuffles",
        "if (lane == 0) s[group] = sum;",
        "if (lane == 0) s[group] = simd_shuffle(sum, 0);",
        "in divergent flow: .* waits at .*, .* at",
    ),
    Bug(
        "read overrun",
        "tree",
        "sum += x[i];",
        "sum += x[i + 1];",
        rf"read overrun: {AT} reads 4 bytes 0 bytes past the end of x, which has 4000 at bug\d+.metal:9",
    ),
    Bug(
        "write overrun",
        "tree",
        "out[b] =",
        "out[b + 1] =",
        "write overrun: thread 0 of block 3 writes 4 bytes 0 bytes past the end of out, which has 16",
    ),
    Bug(
        "write before the array",
        "tree",
        "out[b] =",
        "out[int(b) - 1] =",
        "thread 0 of block 0 writes before the array: 4 bytes 4 bytes before the start of out",
    ),
    Bug(
        "missing bound",
        "scan",
        "if (i < n) out[i] =",
        "out[i] =",
        "write overrun: .* past the end of out",
    ),
    Bug(
        "misaligned access of 16 bytes",
        "vectors",
        "(const device four*)(x + 4 * t)",
        "(const device four*)(x + 4 * t - (t > 0))",
        r"misaligned access: alignment of 16 bytes .* at byte 12 of x: thread 1 of block 0 at bug\d+.metal:\d",
    ),
    Bug(
        "uninitialised threadgroup memory",
        "tree",
        "s[t] = sum;",
        "if (t < 100) s[t] = sum;",
        r"uninitialised memory: .* reads 4 bytes at byte \d+ of s at bug\d+.metal:13",
    ),
    Bug(
        "counter that was never set",
        "shuffles",
        "if (t == 0) atomic_store_explicit(&negative, 0u, memory_order_relaxed);",
        "",
        "uninitialised memory: .* reads 4 bytes at byte 0 of negative",
    ),
    Bug(
        "overrun of a threadgroup array",
        "tree",
        "if (t < o) s[t] += s[t + o];",
        "s[t] += s[t + o];",
        r"index out of the bounds of an array: thread 64 of block 0 at bug\d+.metal:13",
    ),
    Bug(
        "overrun of threadgroup memory of the launch",
        "shuffles",
        "s[group] = sum;",
        "s[group + 1] = sum;",
        "write overrun: .* writes 4 bytes 0 bytes past the end of s, which has 16",
    ),
    Bug(
        "too much threadgroup memory",
        "tree",
        "float s[128];",
        "float s[8193];",
        "too much shared memory: s ends at byte 32772, and a block may have 32768",
    ),
    Bug(
        "missing synchronisation of a SIMD-group",
        "vectors",
        "simdgroup_barrier(mem_flags::mem_threadgroup);",
        "",
        "(race|uninitialised memory).* of s",
    ),
    Bug(
        "threadgroups that write the same place",
        "tree",
        "out[b] = s[0]",
        "out[0] = s[0]",
        "race at byte 0 of out: thread 0 of block 1 writes",
    ),
]


REFUSED = {  # put into `tree` after the sum; what clang says
    "double precision": ("double d = 1;", "poisoned identifier"),
    "functions of C": ("sum = expf(sum);", "undeclared identifier 'expf'"),
    "functions that Metal lacks": ("sum = erf(sum);", "undeclared identifier 'erf'"),
    "sums of a SIMD-group": ("sum = simd_sum(sum);", "'simd_sum.*' is unavailable: the order in which it combines"),
    "pointers into another address space": ("device float* p = s;", "cannot initialize a variable of type .device"),
    "shuffles of 64 bits": ("sum = float(simd_shuffle(1l, 0));", "call to 'simd_shuffle' is ambiguous"),
    "barriers of CUDA": ("__syncthreads();", "undeclared identifier '__syncthreads'"),
    "atomic sums of floats in threadgroup memory": (
        "threadgroup atomic_float a; atomic_fetch_add_explicit(&a, 1.0f, memory_order_relaxed);",
        "no matching function",
    ),
    "writes to constant memory": ("n = 1;", "read-only|const"),
}  # fmt: skip
