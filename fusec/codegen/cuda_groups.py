"""What CUDA threads load and store at once, as functions of the text: groups of neighbours, and rows of a block."""

from __future__ import annotations

FUNCTION = "static __device__ "

# A group's load and store have both their ways in one function: ptxas takes more registers where one calls the other.
GROUP_HELPERS = {
    "fusec_ahead": f"""\
// how many elements a row begins behind an address that groups of K are aligned to
template <int K, class T> {FUNCTION}int fusec_ahead(const T* row) {{
    return (int)((size_t)row / sizeof(T) % K);
}}""",
    "fusec_group": """\
// K neighbours, loaded and stored by instructions of up to 16 bytes
template <class T, int K> struct alignas(sizeof(T) * K < 16 ? sizeof(T) * K : 16) fusec_group {
    T v[K];
};""",
    "fusec_words": """\
// the bytes of a group; copied as words, so that small elements do not take a register each
template <int N> struct alignas(N < 16 ? N : 16) fusec_words {
    unsigned w[N / 4];
};""",
    "fusec_load_each": f"""\
// the first `count` of K neighbours, one by one; the last of them stands for those beyond
template <int K, class T> {FUNCTION}fusec_group<T, K> fusec_load_each(const T* from, int count) {{
    fusec_group<T, K> group;
    for (int k = 0; k < K; ++k) group.v[k] = from[k < count ? k : count - 1];
    return group;
}}""",
    "fusec_load": f"""\
// the first `count` of K neighbours; the last of them stands for those beyond
template <int K, class T> {FUNCTION}fusec_group<T, K> fusec_load(const T* from, int count) {{
    fusec_group<T, K> group;
    if (count == K) {{
        *(fusec_words<sizeof(T) * K>*)&group = *(const fusec_words<sizeof(T) * K>*)from;
    }} else {{
        for (int k = 0; k < K; ++k) group.v[k] = from[k < count ? k : count - 1];
    }}
    return group;
}}""",
    "fusec_copy": f"""\
// K neighbours, by words
template <int K, class T> {FUNCTION}void fusec_copy(T* to, const T* from) {{
    const fusec_group<T, K> group = fusec_load<K>(from, K);
    for (int k = 0; k < K; ++k) to[k] = group.v[k];
}}""",
    "fusec_store_each": f"""\
template <int K, class T> {FUNCTION}void fusec_store_each(T* to, const fusec_group<T, K>& group, int count) {{
    for (int k = 0; k < K; ++k) {{
        if (k < count) to[k] = group.v[k];
    }}
}}""",
    "fusec_load_from": f"""\
// K neighbours of a row at any address, from the element `base`; the nearest in the row stand for those beyond its ends
template <int K, class T> {FUNCTION}fusec_group<T, K> fusec_load_from(const T* row, long long base, long long end) {{
    constexpr int N = sizeof(T) * K, W = N / 4;
    fusec_group<T, K> group;
    const unsigned off = (unsigned)(size_t)(row + base) % alignof(fusec_group<T, K>);
    if (off == 0 && base >= 0 && base + K <= end) {{
        *(fusec_words<N>*)&group = *(const fusec_words<N>*)(row + base);
    }} else if (N <= 16 && base >= K && base + 2 * K <= end) {{  // from two aligned groups
        const fusec_words<N>* const from = (const fusec_words<N>*)((const char*)(row + base) - off);
        const fusec_words<N> low = from[0], high = from[1];
        unsigned w[2 * W];
        for (int i = 0; i < W; ++i) {{
            w[i] = low.w[i];
            w[W + i] = high.w[i];
        }}
        for (int i = 0; i + 2 < 2 * W && W > 2; ++i) w[i] = off & 8 ? w[i + 2] : w[i];
        for (int i = 0; i + 1 < 2 * W && W > 1; ++i) w[i] = off & 4 ? w[i + 1] : w[i];
        for (int i = 0; i < W; ++i) {{
            ((fusec_words<N>*)&group)->w[i] = sizeof(T) < 4 ? __funnelshift_r(w[i], w[i + 1], 8 * (off % 4)) : w[i];
        }}
    }} else {{
        for (int k = 0; k < K; ++k) {{
            const long long at = base + k;
            group.v[k] = row[at < 0 ? 0 : at < end ? at : end - 1];
        }}
    }}
    return group;
}}""",
    "fusec_store": f"""\
template <int K, class T> {FUNCTION}void fusec_store(T* to, const fusec_group<T, K>& group, int count) {{
    if (count == K) {{
        *(fusec_group<T, K>*)to = group;
    }} else {{
        for (int k = 0; k < K; ++k) {{
            if (k < count) to[k] = group.v[k];
        }}
    }}
}}""",
    "fusec_in_rows": f"""\
// where an element is that follows others in rows of N, which are P apart
template <int N, int P> {FUNCTION}unsigned fusec_in_rows(unsigned element) {{
    return N == P ? element : element / N * P + element % N;
}}""",
    "fusec_copy_rows": f"""\
// a block's rows of N elements, by words of 16 bytes if they begin at such addresses; loads do not wait for stores
template <int N, int TO, int FROM, class T> {FUNCTION}void fusec_copy_rows(T* to, const T* from, unsigned count) {{
    constexpr unsigned K = 16 / sizeof(T);
    const unsigned whole = ((size_t)to | (size_t)from) % 16 ? 0 : count / K * K;
    #pragma unroll 8
    for (unsigned k = 0; k < (N + K - 1) / K; ++k) {{
        const unsigned at = K * (k * blockDim.x + threadIdx.x);
        T* const there = to + fusec_in_rows<N, TO>(at);
        if (at < whole) *(fusec_words<16>*)there = *(const fusec_words<16>*)(from + fusec_in_rows<N, FROM>(at));
    }}
    if (whole == count) return;
    #pragma unroll 4
    for (unsigned k = 0; k < N; ++k) {{
        const unsigned at = whole + k * blockDim.x + threadIdx.x;
        if (at < count) to[fusec_in_rows<N, TO>(at)] = from[fusec_in_rows<N, FROM>(at)];
    }}
}}""",
    "fusec_elements": f"""\
template <class T, int K> {FUNCTION}fusec_group<T, K> fusec_elements(const fusec_words<sizeof(T) * K>& words) {{
    if (sizeof(T) >= 4) return *(const fusec_group<T, K>*)&words;
    fusec_group<T, K> group;
    for (int k = 0; k < K; ++k) {{
        const int at = sizeof(T) * k;
        group.v[k] = (T)(words.w[at / 4] >> at % 4 * 8 & (sizeof(T) == 1 ? 0xffu : 0xffffu));
    }}
    return group;
}}""",
    "fusec_turn": f"""\
// K lines of K neighbours: element k of every line comes into line k, in steps that exchange elements of two lines
template <class T, int K> {FUNCTION}void fusec_turn(fusec_words<sizeof(T) * K> (&lines)[K]) {{
    for (int step = 1; step < K; step *= 2) {{
        const int apart = step * sizeof(T);
        for (int k = 0; k < K; ++k) {{
            if (k & step) continue;
            for (int w = 0; w < sizeof(T) * K / 4; ++w) {{
                if (w & apart / 4) continue;
                unsigned& one = lines[k].w[w + apart / 4];
                unsigned& other = lines[k + step].w[w];
                const unsigned first = one, second = other;
                one = apart == 1 ? __byte_perm(first, second, 0x6240) : __byte_perm(first, second, 0x5410);
                other = apart == 1 ? __byte_perm(first, second, 0x7351) : __byte_perm(first, second, 0x7632);
                if (apart >= 4) one = second, other = first;
            }}
        }}
    }}
}}""",
    "fusec_store_to": f"""\
// those of K neighbours that are in their row
template <int K, class T> {FUNCTION}void fusec_store_to(T* to, const fusec_group<T, K>& group, int start, int count) {{
    if (start == 0 && count == K && (size_t)to % alignof(fusec_group<T, K>) == 0) {{
        *(fusec_group<T, K>*)to = group;
    }} else {{
        for (int k = 0; k < K; ++k) {{
            if (start <= k && k < count) to[k] = group.v[k];
        }}
    }}
}}""",
}
