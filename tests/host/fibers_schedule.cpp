// Runs blocks of fibers: stacks, switches, barriers and the exchanges of a warp.
#include <sys/mman.h>
#if !defined(__x86_64__) || defined(FIBER_UCONTEXT)
#include <ucontext.h>
#endif

#include <algorithm>
#include <cstring>

#include "fibers_inside.hpp"

extern "C" {
fiber_position fiber_here;
}

namespace fibers {
Block block;
bool switch_at_atomics;

namespace {
const size_t STACK = 256 * 1024, EDGE = 4096;
const fiber_program* program;
void** arguments;
void* scheduler;
Fiber fibers_of_block[MOST_TOGETHER];
std::vector<char*> free_stacks;
uint64_t random_state;

void enter() {
    program->body(arguments);
    settle_doubts();
    block.fibers[block.running].state = ENDED;
    leave();
}

#if defined(__x86_64__) && !defined(FIBER_UCONTEXT)
// Saves what a call must preserve, and continues where the other stack left off.
extern "C" void fiber_switch(void** from, void* to);
asm(R"(
.text
.globl fiber_switch
.hidden fiber_switch
.type fiber_switch,@function
fiber_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size fiber_switch,.-fiber_switch
)");

void prepare(Fiber& fiber) {
    void** top = (void**)(fiber.stack + STACK);
    *--top = nullptr;  // so that the stack is aligned where a call would have left it
    *--top = (void*)enter;
    for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
    fiber.stack_pointer = top;
}
#else
ucontext_t contexts[MOST_TOGETHER + 1];

void fiber_switch(void** from, void* to) {
    ucontext_t* const saved = from == &scheduler ? &contexts[MOST_TOGETHER] : (ucontext_t*)*from;
    if (from == &scheduler) scheduler = saved;
    swapcontext(saved, (ucontext_t*)to);
}

void prepare(Fiber& fiber) {
    ucontext_t& made = contexts[&fiber - fibers_of_block];
    getcontext(&made);
    made.uc_stack.ss_sp = fiber.stack;
    made.uc_stack.ss_size = STACK;
    made.uc_link = nullptr;
    makecontext(&made, enter, 0);
    fiber.stack_pointer = &made;
}
#endif

char* new_stack() {
    if (!free_stacks.empty()) {
        char* const stack = free_stacks.back();
        free_stacks.pop_back();
        return stack;
    }
    void* made = mmap(nullptr, STACK + EDGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED || mprotect(made, EDGE, PROT_NONE)) return nullptr;
    return (char*)made + EDGE;
}

uint64_t random_number() {  // xorshift64
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

void arrange(std::vector<unsigned>& numbers, int order) {
    for (unsigned i = 0; i < numbers.size(); ++i) numbers[i] = order == 1 ? (unsigned)numbers.size() - 1 - i : i;
    if (order > 1)
        for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random_number() % i]);
}

void resume(unsigned index) {
    Fiber& fiber = block.fibers[index];
    if (!fiber.stack) {
        fiber.stack = new_stack();
        if (!fiber.stack) return record_failure("no memory for the stacks of a block");
        prepare(fiber);
    }
    const fiber_dim& shape = fiber_here.threads;
    const unsigned size = block.threads / program->cluster, local = index % size;
    fiber_here.thread = {local % shape.x, local / shape.x % shape.y, local / shape.x / shape.y};
    if (program->cluster > 1) {
        fiber_here.block.x = block.index * program->cluster + index / size;
        enter_block(index / size);
    }
    fiber_here.linear = index;
    fiber_here.lane = index % WARP;
    fiber_here.warp = index / WARP;
    block.running = (int)index;
    fiber_switch(&scheduler, fiber.stack_pointer);
    block.running = -1;
    if (fiber.state == ENDED) {
        free_stacks.push_back(fiber.stack);
        fiber.stack = nullptr;
    }
}

const char* who(unsigned index) { return place(block.index * block.threads + index); }

// --- barriers of a block

bool release_barrier() {
    unsigned waiting = 0, first = 0;
    for (unsigned i = block.threads; i-- > 0;)
        if (block.fibers[i].state == AT_BARRIER) ++waiting, first = i;
    if (waiting < block.threads) return false;
    const Wait& wait = block.fibers[first].wait;
    uint32_t latest = 0;
    long any = 0, all = 1, count = 0;
    Knowledge known;
    for (unsigned i = 0; i < block.threads; ++i) {
        Fiber& fiber = block.fibers[i];
        if (fiber.wait.line != wait.line || fiber.wait.op != wait.op || fiber.wait.spaces != wait.spaces) {
            record_failure("barrier in divergent flow: %s waits at %s in line %u,", who(first), wait.name, wait.line);
            record_failure(" and %s at %s in line %u", who(i), fiber.wait.name, fiber.wait.line);
            return false;
        }
        latest = std::max(latest, fiber.now);
        known = merged(known, fiber.known);
        any |= fiber.wait.value != 0;
        all &= fiber.wait.value != 0;
        count += fiber.wait.value != 0;
    }
    for (int space = 0; space < 2; ++space)
        if (wait.spaces >> space & 1) block.floor[space] = latest;
    const long result = wait.op == FIBER_OR ? any : wait.op == FIBER_AND ? all : count;
    for (unsigned i = 0; i < block.threads; ++i) {
        Fiber& fiber = block.fibers[i];
        fiber.known = known;
        fiber.now = latest + 1;
        fiber.result = (unsigned long)result;
        fiber.state = READY;
    }
    return true;
}

// --- exchanges of a warp

unsigned lanes_of(unsigned first) { return std::min<unsigned>(WARP, block.threads - first); }

bool source_of(const Wait& wait, unsigned lane, unsigned& source) {
    const unsigned segment = lane & ~(wait.width - 1), inner = lane & (wait.width - 1);
    switch (wait.op) {
        case FIBER_INDEX: source = segment + (wait.argument & (wait.width - 1)); return true;
        case FIBER_UP: source = inner < wait.argument ? lane : lane - wait.argument; return true;
        case FIBER_DOWN: source = inner + wait.argument >= wait.width ? lane : lane + wait.argument; return true;
        case FIBER_XOR:
            source = lane ^ wait.argument;
            if (source / wait.width > lane / wait.width) source = lane;  // later segments are out of reach
            return true;
        default: return false;
    }
}

unsigned long vote_of(const Wait& wait, const Fiber* warp, unsigned present) {
    unsigned set = 0, same = 0;
    for (unsigned lane = 0; lane < WARP; ++lane) {
        if (!(present >> lane & 1)) continue;
        if (warp[lane].wait.value) set |= 1u << lane;
        if (warp[lane].wait.value == wait.value) same |= 1u << lane;
    }
    switch (wait.op) {
        case FIBER_BALLOT: return set;
        case FIBER_ANY: return set != 0;
        case FIBER_ALL: return set == present;
        case FIBER_MATCH: return same;
        default: return 0;
    }
}

void order_memory(Fiber* warp, unsigned present, unsigned spaces) {
    if (!spaces) return;
    uint32_t row[2][WARP] = {};
    Knowledge known;
    for (unsigned lane = 0; lane < WARP; ++lane) {
        if (!(present >> lane & 1)) continue;
        for (int space = 0; space < 2; ++space) {
            for (unsigned other = 0; other < WARP; ++other)
                row[space][other] = std::max(row[space][other], warp[lane].row[space][other]);
            row[space][lane] = std::max(row[space][lane], warp[lane].now);
        }
        known = merged(known, warp[lane].known);
    }
    for (unsigned lane = 0; lane < WARP; ++lane) {
        if (!(present >> lane & 1)) continue;
        for (int space = 0; space < 2; ++space)
            if (spaces >> space & 1) memcpy(warp[lane].row[space], row[space], sizeof row[space]);
        warp[lane].known = known;
        ++warp[lane].now;
    }
}

// All lanes that the mask names and that have not ended must be at the same call with the same mask.
bool release_warp(unsigned first, unsigned lane) {
    Fiber* const warp = block.fibers + first;
    const Wait& wait = warp[lane].wait;
    const unsigned lanes = lanes_of(first);
    unsigned present = 0;
    for (unsigned other = 0; other < lanes; ++other) {
        if ((wait.mask && !(wait.mask >> other & 1)) || warp[other].state == ENDED) continue;
        const Wait& theirs = warp[other].wait;
        if (warp[other].state != AT_WARP || theirs.line != wait.line || theirs.op != wait.op) return false;
        if (theirs.mask != wait.mask) {
            record_failure("differing masks at %s in line %u: %s has %08x,", wait.name, wait.line, who(first + lane), wait.mask);
            record_failure(" %s has %08x", who(first + other), theirs.mask);
            return false;
        }
        present |= 1u << other;
    }
    for (unsigned other = 0; other < lanes; ++other) {
        if (!(present >> other & 1)) continue;
        unsigned source;
        if (!source_of(warp[other].wait, other, source)) {
            warp[other].result = vote_of(warp[other].wait, warp, present);
        } else if (source >= WARP || !(present >> source & 1)) {
            const char* why = source >= lanes ? "which the block does not have" :
                wait.mask && !(wait.mask >> source & 1) ? "which is not in the mask" : "which has ended";
            record_failure("shuffle from an inactive lane: %s reads lane %u, %s, at %s in line %u", who(first + other), source,
                           why, wait.name, wait.line);
            return false;
        } else {
            warp[other].result = warp[source].wait.value;
        }
    }
    order_memory(warp, present, wait.spaces);
    for (unsigned other = 0; other < lanes; ++other)
        if (present >> other & 1) warp[other].state = READY;
    return true;
}

bool release_warps() {
    bool any = false;
    for (unsigned first = 0; first < block.threads; first += WARP)
        for (unsigned lane = 0; lane < lanes_of(first) && !failure(); ++lane)
            if (block.fibers[first + lane].state == AT_WARP) any |= release_warp(first, lane);
    return any;
}

void report_deadlock() {
    int waiting = -1;
    for (unsigned i = 0; i < block.threads; ++i) {
        const State state = block.fibers[i].state;
        if (state == AT_BARRIER || (state == AT_WARP && waiting < 0)) waiting = (int)i;
        if (state == AT_BARRIER) break;
    }
    const Fiber& one = block.fibers[waiting];
    record_failure("%s in divergent flow: %s waits at %s in line %u", one.state == AT_BARRIER ? "barrier" : "warp function",
                   who((unsigned)waiting), one.wait.name, one.wait.line);
    for (unsigned i = 0; i < block.threads; ++i) {
        const Fiber& other = block.fibers[i];
        if (other.state == ENDED && one.state == AT_BARRIER) return record_failure(", %s has ended", who(i));
        if (other.state == ENDED || (other.state == one.state && other.wait.line == one.wait.line)) continue;
        return record_failure(", %s at %s in line %u", who(i), other.wait.name, other.wait.line);
    }
}

void run_block(int order, int poison) {
    for (unsigned i = 0; i < block.threads; ++i) {
        Fiber& fiber = block.fibers[i];
        fiber.state = READY;
        fiber.now = 1;
        memset(fiber.row, 0, sizeof fiber.row);
        fiber.known = fiber.pending = fiber.published = nullptr;
        fiber.doubts.clear();
    }
    block.floor[0] = block.floor[1] = 0;
    begin_block(poison);
    std::vector<unsigned> turns(block.threads);
    while (!failure()) {
        arrange(turns, order);
        bool progress = false;
        unsigned ended = 0;
        for (unsigned i : turns) {
            if (block.fibers[i].state == READY) resume(i), progress = true;
            if (failure()) return;
            ended += block.fibers[i].state == ENDED;
        }
        if (ended == block.threads) return;
        progress |= release_warps();
        if (!failure()) progress |= release_barrier();
        if (!progress && !failure()) report_deadlock();
    }
}
}  // namespace

void leave() {
    void* abandoned;
    for (;;) {
#if defined(__x86_64__) && !defined(FIBER_UCONTEXT)
        fiber_switch(&abandoned, scheduler);
#else
        abandoned = block.fibers[block.running].stack_pointer;
        fiber_switch(&abandoned, scheduler);
#endif
    }
}

void yield() { fiber_switch(&block.fibers[block.running].stack_pointer, scheduler); }
}  // namespace fibers

using namespace fibers;

extern "C" long fiber_barrier(unsigned spaces, int vote, long value, const char* name, unsigned line) {
    settle_doubts();
    Fiber& fiber = block.fibers[block.running];
    fiber.wait = {name, line, 0, 0, 0, spaces, vote, (unsigned long)value};
    fiber.state = AT_BARRIER;
    yield();
    return (long)fiber.result;
}

extern "C" unsigned fiber_cluster() { return program->cluster; }

extern "C" unsigned long fiber_warp(int op, unsigned mask, unsigned long value, unsigned argument, unsigned width,
                                    unsigned spaces, const char* name, unsigned line) {
    settle_doubts();
    Fiber& fiber = block.fibers[block.running];
    if (mask && !(mask >> fiber_here.lane & 1))
        fail("wrong mask: %s calls %s in line %u with mask %08x, which does not name lane %u", here(), name, line, mask,
             fiber_here.lane);
    if (!width || width > WARP || (width & (width - 1))) fail("%s calls %s in line %u with width %u", here(), name, line, width);
    fiber.wait = {name, line, mask, argument, width, spaces, op, value};
    fiber.state = AT_WARP;
    yield();
    return fiber.result;
}

extern "C" const char* fiber_run(const fiber_program* what, const unsigned grid[3], const unsigned threads[3],
                                 const unsigned long* dynamic, unsigned long limit, int order, int poison, void** values) {
    forget_failure();
    program = what;
    arguments = values;
    random_state = 0x9e3779b97f4a7c15u + (uint64_t)order * 0x2545f4914f6cdd1du;
    switch_at_atomics = order > 1;
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], size = (uint64_t)threads[0] * threads[1] * threads[2];
    const unsigned cluster = what->cluster;
    const bool divides = cluster == 1 || (size % WARP == 0 && blocks == grid[0] && blocks % cluster == 0);
    if (!blocks || !size || size > MOST_THREADS || size * cluster > MOST_TOGETHER || !divides || blocks * size > UINT32_MAX) {
        record_failure("cannot launch %lu blocks of %lu threads", (unsigned long)blocks, (unsigned long)size);
        return failure();
    }
    block.threads = (unsigned)size * cluster;
    block.fibers = fibers_of_block;
    block.running = -1;
    fiber_here.threads = {threads[0], threads[1], threads[2]};
    fiber_here.blocks = {grid[0], grid[1], grid[2]};
    fiber_here.warps = ((unsigned)size + WARP - 1) / WARP;
    begin_launch((const void*)what->body);
    lay_out(*what, dynamic, limit);
    std::vector<unsigned> turns(blocks / cluster);
    arrange(turns, order);
    for (unsigned turn : turns) {
        if (failure()) break;
        block.index = turn;
        fiber_here.block = {turn % grid[0], turn / grid[0] % grid[1], turn / grid[0] / grid[1]};
        run_block(order, poison);
    }
    for (Fiber& fiber : fibers_of_block)  // those that a failure left behind
        if (fiber.stack) free_stacks.push_back(fiber.stack), fiber.stack = nullptr;
    return failure();
}
