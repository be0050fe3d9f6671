"""How the blocks of a cluster on CUDA meet, and reach each other's shared memory; devices of sm_90 and later have both.

No block stores where another one has not started, or has ended: all meet before the first of them tells the others
something, and again before they read it.
"""

from __future__ import annotations

MEETING, TELL = "fusec_meet();", "fusec_tell({place}, {value})"
CLUSTER_HELPERS = {
    "fusec_meet": """\
// all threads of a cluster of blocks wait for each other, and then see earlier writes
static __device__ void fusec_meet() {
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}""",
    "fusec_tell": """\
// stores a value in the shared memory of every block of the cluster
template <class T> static __device__ void fusec_tell(T& place, T value) {
    const unsigned blocks = __clusterSizeInBlocks();
    for (unsigned block = 0; block < blocks; ++block) *(T*)__cluster_map_shared_rank(&place, block) = value;
}""",
}
