// What compiled block programs see of the fiber runtime (fibers_*.cpp): each thread of a block is a fiber with a stack of
// its own, blocks run one by one. No standard header is included, so that text which may not use one can be compiled.
#pragma once

struct fiber_dim { unsigned x, y, z; };

// Where the running thread stands. The scheduler rewrites it at every switch.
struct fiber_position {
    fiber_dim thread, block, threads, blocks;
    unsigned linear, lane, warp, warps;
};

// A variable in shared memory. dynamic: 0, or 1 + the index of the size that the launch gives; those share an address.
struct alignas(64) fiber_variable {  // so that they stand in their section as in an array
    const char* name;
    unsigned long bytes, align;
    unsigned dynamic;
    char* address;
};

enum { FIBER_SHARED = 1, FIBER_DEVICE = 2 };  // memories that a barrier orders
enum fiber_vote { FIBER_NONE, FIBER_OR, FIBER_AND, FIBER_COUNT };
enum fiber_warp_op {
    FIBER_SYNC, FIBER_INDEX, FIBER_UP, FIBER_DOWN, FIBER_XOR, FIBER_BALLOT, FIBER_ANY, FIBER_ALL, FIBER_MATCH,
};

struct fiber_program {
    void (*body)(void** arguments);
    const fiber_variable *own, *own_end, *common, *common_end;  // declared in the entry, and in functions it may call
    unsigned cluster;  // blocks that run together, and reach each other's shared memory
};

extern "C" {
extern fiber_position fiber_here;

// dynamic: sizes of dynamic shared variables; limit: bytes of shared memory; order: 0 ascending, 1 descending, else a
// shuffle by this seed, in which atomics switch too; poison: the byte that shared memory holds at first.
#define HOST_BLOCKS                                                                                              \
    const unsigned grid[3], const unsigned block[3], const unsigned long *dynamic, unsigned long limit, int order, \
        int poison, void **arguments
// Returns null, or what went wrong; <at 1f> in it is an address in the caller's library.
const char* fiber_run(const fiber_program*, HOST_BLOCKS);
unsigned long fiber_shared_bytes(const fiber_program*);  // without the dynamic

long fiber_barrier(unsigned spaces, int vote, long value, const char* name, unsigned line);
// mask 0: all lanes that have not ended must come.
unsigned long fiber_warp(int op, unsigned mask, unsigned long value, unsigned argument, unsigned width, unsigned spaces,
                         const char* name, unsigned line);
unsigned fiber_cluster();
void* fiber_other(const void* at, unsigned block);  // the same place in the shared memory of a block of the cluster
void fiber_fence();
// is_store: what was there does not matter
void fiber_atomic(const volatile void* at, unsigned long bytes, int is_store, void* caller);
}
