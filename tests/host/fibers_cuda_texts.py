"""Block programs in CUDA C that are right, and the changes that spoil them: what the executor must accept, and find."""

from dataclasses import dataclass

TREE = """
extern "C" __global__ void __launch_bounds__(128) tree(const float* x, float* out, int n) {
    __shared__ float s[128];
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    s[t] = sum;
    __syncthreads();
    for (int o = 64; o > 0; o >>= 1) {
        if (t < o) s[t] += s[t + o];
        __syncthreads();  // in the loop
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
SHUFFLES = """
extern "C" __global__ void __launch_bounds__(128) shuffles(const int* x, int* out, unsigned* votes, int n) {
    extern __shared__ int s[];
    const int t = threadIdx.x, lane = t & 31, i = blockIdx.x * blockDim.x + t;
    int sum = i < n ? x[i] : 0;
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if (lane == 0) s[t >> 5] = sum;
    const int negative = __syncthreads_count(i < n && x[i] < 0);
    if (t < 4) {
        sum = s[t];
        for (int o = 2; o > 0; o >>= 1) sum += __shfl_xor_sync(0xfu, sum, o, 4);
        const unsigned odd = __ballot_sync(0xfu, s[t] & 1);
        const int all = __all_sync(0xfu, s[t] != 0), any = __any_sync(0xfu, s[t] < 0);
        if (t == 0) {
            out[blockIdx.x] = sum;
            votes[blockIdx.x] = odd | all << 4 | any << 5 | negative << 8;
        }
    }
}
"""
LAST = """
extern "C" __global__ void last(const float* x, float* partial, unsigned* counter, float* out, int n) {
    extern __shared__ float s[];
    __shared__ bool is_last;
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
    if ((t & 31) == 0) s[t >> 5] = sum;
    __syncthreads();
    if (t == 0) {
        sum = 0.0f;
        for (int w = 0; w < blockDim.x >> 5; ++w) sum += s[w];
        partial[blockIdx.x] = sum;
        __threadfence();  // what was written, before the counter
        is_last = atomicAdd(counter, 1u) == gridDim.x - 1;
        __threadfence();  // the counter, before what is read
    }
    __syncthreads();
    if (!is_last) return;
    sum = 0.0f;
    if (t == 0) {
        for (int i = 0; i < gridDim.x; ++i) sum += partial[i];
        *out = sum;
        *counter = 0;
    }
}
"""
TRANSPOSE = """
extern "C" __global__ void transpose(const short* x, short* out, int rows, int columns) {
    __shared__ short tile[16][17];
    int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x;
    if (r < rows && c < columns) tile[threadIdx.y][threadIdx.x] = x[r * columns + c];
    __syncthreads();
    r = blockIdx.x * 16 + threadIdx.y;
    c = blockIdx.y * 16 + threadIdx.x;
    if (r < columns && c < rows) out[r * rows + c] = tile[threadIdx.x][threadIdx.y];
}
"""
SCAN = """
extern "C" __global__ void scan(const int* x, int* out, int n) {
    __shared__ int s[128];
    __shared__ int carry;
    const int t = threadIdx.x;
    if (t == 0) carry = 0;
    for (int start = 0; start < n; start += 128) {
        s[t] = start + t < n ? x[start + t] : 0;
        __syncthreads();  // filled
        for (int o = 1; o < 128; o <<= 1) {
            const int before = t >= o ? s[t - o] : 0;
            __syncthreads();  // read
            s[t] += before;
            __syncthreads();  // added
        }
        if (start + t < n) out[start + t] = s[t] + carry;
        __syncthreads();  // the carry was read
        if (t == 0) carry += s[127];
        __syncthreads();  // before the next ones are filled in
    }
}
"""
VECTORS = """
struct alignas(16) four { float v[4]; };
extern "C" __global__ void vectors(const float* x, float* out, int n) {
    __shared__ alignas(16) float s[128];
    const int t = threadIdx.x;
    if (4 * t + 4 <= n) *(four*)(s + 4 * t) = *(const four*)(x + 4 * t);
    __syncwarp();
    const int other = t ^ 1;
    if (4 * t + 4 <= n && 4 * other + 4 <= n) *(four*)(out + 4 * t) = *(const four*)(s + 4 * other);
}
"""
HISTOGRAM = """
extern "C" __global__ void histogram(const float* x, unsigned* counts, float* largest, int n) {
    __shared__ unsigned bins[8];
    __shared__ unsigned most;
    if (threadIdx.x < 8) bins[threadIdx.x] = 0;
    if (threadIdx.x == 8) most = 0xff800000u;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&bins[(int)x[i] & 7], 1u);
        unsigned old = most, seen;
        do {
            seen = old;
            const float larger = __uint_as_float(seen) > x[i] ? __uint_as_float(seen) : x[i];
            old = atomicCAS(&most, seen, __float_as_uint(larger));
        } while (old != seen);
    }
    __syncthreads();  // counted
    if (threadIdx.x < 8 && bins[threadIdx.x]) atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
    if (threadIdx.x == 8) largest[blockIdx.x] = __uint_as_float(most);
}
"""
FORMS = """
struct pair { float value; int at; };
__device__ int in_a_function(int t) {
    __shared__ int s[32];
    s[t] = t;
    __syncwarp();
    return s[31 - t];
}
extern "C" __global__ void another(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = 0;
    *out = in_a_function(s[threadIdx.x]);
}
__device__ __forceinline__ float between(const float* __restrict__ s) { return __ldg(s); }
extern "C" __global__ void __launch_bounds__(32, 4) forms(const float* x, float* out, int n) {
    extern __shared__ __align__(16) unsigned char memory[];
    extern __shared__ float same[];
    __shared__ __align__(8) float a[2][32];
    alignas(16) __shared__ float b[4];
    __shared__ volatile unsigned long long c;
    __shared__ pair
        d[32];
    const int t = threadIdx.x;  // "__shared__ {" is no declaration
    *(volatile float*)(memory + 4 * t) = x[t];
    a[t & 1][t] = same[t];
    if (t < 4) b[t] = x[t];
    if (t == 0) c = 40;
    d[t].value = x[t];
    d[t].at = t;
    __syncthreads();
    const pair other = d[in_a_function(t)];
    out[t] = a[t & 1][t] + b[t & 3] + (float)c + other.value + (float)other.at + between(x) + (float)n;
}
"""
PROGRAMS = {
    "tree": TREE, "shuffles": SHUFFLES, "last": LAST, "transpose": TRANSPOSE, "scan": SCAN, "vectors": VECTORS,
    "histogram": HISTOGRAM,
    "forms": FORMS,
}  # fmt: skip


@dataclass(frozen=True)
class Bug:
    """One change of a program that is right, and the report it must cause, as a regular expression."""

    name: str
    program: str
    old: str
    new: str
    report: str

    def text(self, texts: dict[str, str], entry: str) -> str:
        """The spoilt program, under a name of its own."""
        right = texts[self.program]
        assert right.count(self.old) == 1, f"{self.old} stands {right.count(self.old)} times in {self.program}"
        spoilt = right.replace(self.old, self.new)
        return spoilt.replace(f" {self.program}(", f" {entry}(")


AT = r"thread \(?[\d,]+\)? of block \(?[\d,]+\)?"
BUGS = [
    Bug(
        "missing barrier after the store",
        "tree",
        "    __syncthreads();\n",
        "",
        r"(race|uninitialised memory).* of s\b.*at \w+.cu:\d",
    ),
    Bug(
        "missing barrier in the loop",
        "tree",
        "__syncthreads();  // in the loop",
        "",
        rf"race at byte \d+ of s: {AT} writes at bug\d+.cu:10 and {AT} reads at bug\d+.cu:10 without a barrier",
    ),
    Bug(
        "missing barrier between reading and adding",
        "scan",
        "__syncthreads();  // read",
        "",
        r"race at byte \d+ of s: .*:11 .*:13",
    ),
    Bug(
        "missing barrier before the carry changes",
        "scan",
        "__syncthreads();  // the carry was read",
        "",
        r"race at byte 0 of carry: .*:16 .*:18",
    ),
    Bug(
        "missing barrier before memory is used again",
        "scan",
        "__syncthreads();  // before the next ones are filled in",
        "",
        r"race at byte 508 of s: .*:8 .*:18",
    ),
    Bug(
        "missing barrier between atomics and reading",
        "histogram",
        "__syncthreads();  // counted",
        "",
        r"race at byte \d+ of (bins|most): .* (reads .* and .* updates|updates .* and .* reads) at",
    ),
    Bug(
        "barrier in divergent flow",
        "tree",
        "if (t < o) s[t] += s[t + o];\n        __syncthreads();",
        "if (t < o) { s[t] += s[t + o];\n        __syncthreads(); }",
        rf"barrier in divergent flow: {AT} waits at __syncthreads in line 11, {AT} has ended",
    ),
    Bug(
        "return before a barrier",
        "scan",
        "if (t == 0) carry = 0;",
        "if (t == 0) carry = 0;\n    if (t >= 100) return;",
        rf"barrier in divergent flow: {AT} waits at __syncthreads in line 10, thread 100 .* has ended",
    ),
    Bug(
        "barriers of two places",
        "tree",
        "s[t] = sum;\n    __syncthreads();",
        "s[t] = sum;\n    if (t < 64) __syncthreads();\n    else __syncthreads();",
        rf"barrier in divergent flow: {AT} waits at __syncthreads in line 8, and {AT} at __syncthreads in line 9",
    ),
    Bug(
        "mask that names too few lanes",
        "last",
        "0xffffffffu",
        "0xffffu",
        r"wrong mask: .* calls __shfl_down_sync in line 8 with mask 0000ffff, which does not name lane \d+",
    ),
    Bug(
        "differing masks",
        "last",
        "0xffffffffu",
        "((t & 31) < 16 ? 0xffffffffu : 0xffff0000u)",
        "differing masks at __shfl_down_sync in line 8: .* has ffffffff, .* has ffff0000",
    ),
    Bug(
        "lanes that returned before a shuffle",
        "last",
        "for (int o = 16",
        "if (t >= 120) return;\n    for (int o = 16",
        rf"shuffle from an inactive lane: {AT} reads lane 24, which has ended, at __shfl_down_sync in line 9",
    ),
    Bug(
        "source outside of the mask",
        "shuffles",
        "__shfl_xor_sync(0xfu, sum, o, 4)",
        "__shfl_xor_sync(0xfu, sum, 4 * o)",
        "shuffle from an inactive lane: .* reads lane 8, which is not in the mask, at __shfl_xor_sync",
    ),
    Bug(
        "warp function in divergent flow",
        "shuffles",
        "if (lane == 0) s[t >> 5] = sum;",
        "if (lane == 0) s[t >> 5] = __shfl_sync(0xffffffffu, sum, 0);",
        r"in divergent flow: .* waits at .*, .* at",
    ),
    Bug(
        "read overrun",
        "tree",
        "sum += x[i];",
        "sum += x[i + 1];",
        rf"read overrun: {AT} reads 4 bytes 0 bytes past the end of x, which has 4000 at bug\d+.cu:6",
    ),
    Bug(
        "write overrun",
        "tree",
        "out[blockIdx.x] =",
        "out[blockIdx.x + 1] =",
        r"write overrun: thread 0 of block 3 writes 4 bytes 0 bytes past the end of out, which has 16 at bug\d+.cu:13",
    ),
    Bug(
        "write before the array",
        "tree",
        "out[blockIdx.x] =",
        "out[(int)blockIdx.x - 1] =",
        r"thread 0 of block 0 writes before the array: 4 bytes 4 bytes before the start of out at bug\d+.cu:13",
    ),
    Bug(
        "missing bound of the grid stride",
        "vectors",
        "if (4 * t + 4 <= n) ",
        "",
        "read overrun: .* past the end of x",
    ),
    Bug(
        "far overrun",
        "tree",
        "x[i];",
        "x[i + (1LL << 40)];",
        r"(Segmentation fault|Bus error): thread .* of block .* touches memory|read overrun",
    ),
    Bug(
        "misaligned access of 16 bytes",
        "vectors",
        "(const four*)(x + 4 * t)",
        "(const four*)(x + 4 * t - (t > 0))",
        r"misaligned access: alignment of 16 bytes is needed .* at byte 12 of x: thread 1 of block 0 at bug\d+.cu:6",
    ),
    Bug(
        "shared memory without the alignment",
        "vectors",
        "__shared__ alignas(16) float",
        "__shared__ float",
        "misaligned access: alignment of 16 bytes is needed for the address at byte 0 of s",
    ),
    Bug(
        "uninitialised shared memory",
        "tree",
        "s[t] = sum;",
        "if (t < 100) s[t] = sum;",
        r"uninitialised memory: .* reads 4 bytes at byte \d+ of s at bug\d+.cu:10",
    ),
    Bug(
        "uninitialised workspace",
        "last",
        "partial[blockIdx.x] = sum;",
        "if (blockIdx.x) partial[blockIdx.x] = sum;",
        "uninitialised memory: .* reads 4 bytes at byte 0 of partial",
    ),
    Bug(
        "overrun of a shared array",
        "tree",
        "if (t < o) s[t] += s[t + o];",
        "s[t] += s[t + o];",
        r"index out of the bounds of an array: thread 64 of block 0 at bug\d+.cu:10",
    ),
    Bug(
        "overrun of dynamic shared memory",
        "last",
        "s[t >> 5] = sum;",
        "s[(t >> 5) + 1] = sum;",
        "write overrun: .* writes 4 bytes 0 bytes past the end of s, which has 16",
    ),
    Bug(
        "too much shared memory",
        "tree",
        "float s[128];",
        "float s[12289];",
        "too much shared memory: s ends at byte 49156, and a block may have 49152",
    ),
    Bug(
        "no fence after writing",
        "last",
        "__threadfence();  // what was written, before the counter",
        "",
        "race at byte 0 of partial: .* without fence, atomic, atomic, fence",
    ),
    Bug(
        "no fence before reading",
        "last",
        "__threadfence();  // the counter, before what is read",
        "",
        "race at byte 0 of partial: .* without fence, atomic, atomic, fence",
    ),
    Bug(
        "missing synchronisation of a warp",
        "vectors",
        "__syncwarp();",
        "",
        "(race|uninitialised memory).* of s",
    ),
    Bug(
        "blocks that write the same place",
        "tree",
        "out[blockIdx.x] = s[0]",
        "out[0] = s[0]",
        r"race at byte 0 of out: thread 0 of block 1 writes",
    ),
    Bug(
        "plain update of the counter",
        "last",
        "atomicAdd(counter, 1u)",
        "(*counter)++",
        "race at byte 0 of counter",
    ),
    Bug(
        "part of the output left unwritten",
        "transpose",
        "r < columns &&",
        "r < columns - 1 &&",
        r"out in order 0 and order 1 differ at element \d+",
    ),
    Bug(
        "result that depends on the order of threads",
        "last",
        "*counter = 0;",
        "*out = blockIdx.x;",
        "out in order 0 and order 1 differ at element 0: ",
    ),
    Bug(
        "conversion of a number that is too large",
        "histogram",
        "(int)x[i] & 7",
        "(int)(x[i] * 1e12f) & 7",
        r"conversion out of range: .* at bug\d+.cu:9",
    ),
    Bug(
        "signed overflow",
        "shuffles",
        "int sum = i < n ? x[i] : 0;",
        "int sum = i < n ? x[i] + 2147483647 : 0;",
        r"signed overflow: .* at bug\d+.cu:5",
    ),
]
