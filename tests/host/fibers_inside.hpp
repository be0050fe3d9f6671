// What the parts of the fiber runtime share.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "fibers.hpp"

namespace fibers {
enum { WARP = 32, MOST_THREADS = 1024, MOST_TOGETHER = 4096 };
enum State : uint8_t { READY, AT_BARRIER, AT_WARP, ENDED };

// What a thread knows of accesses by threads that no barrier of its block covers: by block, the time of each thread up to
// which all accesses happened before. Never changed once shared.
using Times = std::shared_ptr<const std::vector<uint32_t>>;
using Known = std::map<unsigned, Times>;
using Knowledge = std::shared_ptr<const Known>;

struct Wait {  // what a fiber waits for
    const char* name;
    unsigned line, mask, argument, width, spaces;
    int op;
    unsigned long value;
};

// A plain read that meets an update by an atomic of another thread: a race, unless an atomic of the reader on the same
// place comes next, as in the usual loop around compare-and-swap.
struct Doubt {
    uintptr_t at, caller;
    uint32_t thread, code;
};

struct Fiber {
    void* stack_pointer;
    char* stack;
    State state;
    Wait wait;
    unsigned long result;
    uint32_t now;                   // time of this thread, from 1
    uint32_t row[2][WARP];          // by memory: times of the lanes of this warp that are known to have passed
    Knowledge known, pending, published;
    std::vector<Doubt> doubts;
};

struct Block {                      // or a cluster of blocks, which then meet at the same barriers
    unsigned index, threads;
    uint32_t floor[2];              // by memory: all accesses of this block up to this time are known to all of it
    Fiber* fibers;
    int running;                    // index of the fiber that runs, -1 in the scheduler
};
extern Block block;
extern bool switch_at_atomics;

[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
void record_failure(const char* format, ...) __attribute__((format(printf, 1, 2)));
const char* failure();
void forget_failure();
[[noreturn]] void leave();          // of a fiber, for good
void yield();
const char* place(unsigned thread); // "block 1, thread 5", by number in the grid
const char* here();

// memory
void lay_out(const fiber_program&, const unsigned long* dynamic, unsigned long limit);
void begin_launch(const void* body);
void begin_block(int poison);
void enter_block(unsigned number);  // of a cluster: shared variables are those of this block
Knowledge merged(const Knowledge&, const Knowledge&);
void settle_doubts();               // before a fiber waits or ends
const char* describe(uintptr_t address);
uint32_t offset_of(const void* code);
}  // namespace fibers
