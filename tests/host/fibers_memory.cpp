// Watches every access of a block program. The programs are compiled with -fsanitize=thread and linked with the functions
// below instead of the sanitizer's runtime, so loads and stores come here, as the program's text has them.
//
// For each byte of a buffer and of shared memory it is kept who wrote it last and who has read it since, with the time of
// that thread. An access must happen after the writes it meets, and a write also after the reads: by a barrier of the
// block, a synchronisation of the warp, or fence, atomic, atomic, fence (PTX: both sides fence). What merely happened
// earlier in this run is a race. Each byte also knows whether it was ever written.
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fibers_inside.hpp"

namespace fibers {
namespace {
const unsigned long ARENA = 1 << 20, GAP = 64, EDGE = 1 << 16;
const uint32_t ATOMIC = 1u << 31, MANY = 1u << 31;

struct Cell {
    uint32_t writer, written, write_code;   // number of the thread in the grid, its time (0: never) and flag ATOMIC
    uint32_t reader, read, read_code;       // if `read` is MANY, `reader` is an index of `crowds`
};
struct Reader { uint32_t thread, time, code; };
struct Crowd {                              // unordered readers of one byte
    std::vector<Reader> readers;
    uint32_t block, latest;                 // of all, if they are of one block; else block is ~0
};
struct Region {
    const char* name;
    uintptr_t start, bytes, low, high;      // within [low, high) an address is blamed on this region
    int space;
    Cell* cells;
    uint8_t* ready;                         // by byte: was it written? Null if it always was
};

std::vector<Region> buffers, shared, regions;
std::vector<Crowd> crowds;
std::map<uintptr_t, Knowledge> published;   // by the address of an atomic
const Region* latest_region;
uintptr_t code_start;
char* arena;
std::vector<std::pair<fiber_variable*, char*>> homes;  // where the shared variables of the first block of a cluster are
unsigned long span, entered;                // bytes from block to block, and the block whose variables they are

void* zeros(size_t bytes) {
    void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return made == MAP_FAILED ? nullptr : made;
}

void release(Region& region) {
    const uintptr_t room = region.bytes ? region.bytes : 1;
    munmap(region.cells, room * sizeof(Cell));
    if (region.ready) munmap(region.ready, room);
}

Region made_region(const char* name, uintptr_t start, uintptr_t bytes, uintptr_t low, uintptr_t high, int space, bool ready) {
    const uintptr_t room = bytes ? bytes : 1;
    return {name, start, room, low, high, space, (Cell*)zeros(room * sizeof(Cell)), ready ? nullptr : (uint8_t*)zeros(room)};
}

const Region* find(uintptr_t at) {
    if (latest_region && at >= latest_region->low && at < latest_region->high) return latest_region;
    for (const Region& region : regions)
        if (at >= region.low && at < region.high) return latest_region = &region;
    return nullptr;
}

bool knows(const Known* known, unsigned of_block, unsigned thread, uint32_t time) {
    if (!known) return false;
    const auto found = known->find(of_block);
    return found != known->end() && time <= (*found->second)[thread];
}

// Did that moment of that thread happen before now, for the running thread?
bool is_before(uint32_t thread, uint32_t time, int space) {
    const unsigned of_block = thread / block.threads, local = thread % block.threads;
    const Fiber& fiber = block.fibers[block.running];
    if (of_block == block.index) {
        if ((int)local == block.running || time <= block.floor[space]) return true;
        if (local / WARP == fiber_here.warp && time <= fiber.row[space][local % WARP]) return true;
    }
    return knows(fiber.known.get(), of_block, local, time);
}

[[noreturn]] void fail_race(const Region& region, uintptr_t at, const char* mine, const char* theirs, uint32_t thread,
                            uint32_t code, uintptr_t caller) {
    const bool can_wait = region.space == 0 || thread / block.threads == block.index;
    record_failure("race %s: ", describe(at));
    record_failure("%s %s at <at %x> ", here(), mine, offset_of((void*)caller));
    record_failure("and %s %s at <at %x> without ", place(thread), theirs, code);
    record_failure(can_wait ? "a barrier between them that orders this memory" : "fence, atomic, atomic, fence between them");
    leave();
}

void check_readers(const Region& region, const Cell& cell, uintptr_t at, const char* verb, uintptr_t caller) {
    if (!cell.read) return;
    if (cell.read != MANY) {
        if (!is_before(cell.reader, cell.read, region.space))
            fail_race(region, at, verb, "reads", cell.reader, cell.read_code, caller);
        return;
    }
    const Crowd& crowd = crowds[cell.reader];
    if (crowd.block == block.index && crowd.latest <= block.floor[region.space]) return;
    for (const Reader& each : crowd.readers)
        if (!is_before(each.thread, each.time, region.space))
            fail_race(region, at, verb, "reads", each.thread, each.code, caller);
}

void note_reader(const Region& region, Cell& cell, uint32_t self, uint32_t now, uint32_t code) {
    if (cell.read == MANY) {
        Crowd& crowd = crowds[cell.reader];
        if (crowd.block != block.index || crowd.latest > block.floor[region.space]) {
            if (crowd.readers.back().thread == self && crowd.readers.back().time == now) return;
            crowd.readers.push_back({self, now, code});
            if (crowd.block != block.index) crowd.block = ~0u;
            crowd.latest = std::max(crowd.latest, now);
            return;
        }
    } else if (cell.read && !is_before(cell.reader, cell.read, region.space)) {
        const unsigned of_block = cell.reader / block.threads;
        crowds.push_back({{{cell.reader, cell.read, cell.read_code}, {self, now, code}},
                          of_block == block.index ? block.index : ~0u, std::max(cell.read, now)});
        cell.reader = (uint32_t)crowds.size() - 1;
        cell.read = MANY;
        return;
    }
    cell.reader = self;
    cell.read = now;
    cell.read_code = code;
}

enum Kind { READ, WRITE, UPDATE };
const char* const VERBS[] = {"reads", "writes", "updates"};

void check_writer(const Region& region, const Cell& cell, uintptr_t at, Kind kind, uintptr_t caller) {
    const bool is_atomic = cell.written & ATOMIC;
    if (!cell.written || (kind == UPDATE && is_atomic)) return;
    if (is_before(cell.writer, cell.written & ~ATOMIC, region.space)) return;
    if (kind == READ && is_atomic) {
        block.fibers[block.running].doubts.push_back({at, caller, cell.writer, cell.write_code});
        return;
    }
    fail_race(region, at, VERBS[kind], VERBS[is_atomic ? UPDATE : WRITE], cell.writer, cell.write_code, caller);
}

void check_extent(const Region& region, uintptr_t at, uintptr_t bytes, uintptr_t aligned, Kind kind, uintptr_t caller) {
    const char *verb = kind == READ ? "read" : "write", *what;
    if (at >= region.start && at + bytes <= region.start + region.bytes && at % aligned == 0) return;
    what = describe(at);
    const uint32_t from = offset_of((void*)caller);
    if (at < region.start)
        fail("%s %ss before the array: %lu bytes %s at <at %x>", here(), verb, bytes, what, from);
    if (at + bytes > region.start + region.bytes)
        fail("%s overrun: %s %ss %lu bytes %s at <at %x>", verb, here(), verb, bytes, what, from);
    if (at % aligned) fail("misaligned access: %s %ss %lu bytes %s at <at %x>", here(), verb, bytes, what, from);
}

void check_ready(const Region& region, uintptr_t at, uintptr_t first, uintptr_t bytes, Kind kind, uintptr_t caller) {
    if (!region.ready) return;
    if (kind != WRITE && !memchr(region.ready + first, 1, bytes))  // a struct may have unwritten padding
        fail("uninitialised memory: %s reads %lu bytes %s at <at %x>", here(), bytes, describe(at), offset_of((void*)caller));
    if (kind != READ) memset(region.ready + first, 1, bytes);
}

void access(const volatile void* address, uintptr_t bytes, uintptr_t aligned, Kind kind, void* code) {
    if (block.running < 0 || failure()) return;
    const uintptr_t at = (uintptr_t)address, caller = (uintptr_t)code - 1;
    const Region* const region = find(at);
    if (!region) return;
    check_extent(*region, at, bytes, aligned, kind, caller);
    const uintptr_t first = at - region->start;
    check_ready(*region, at, first, bytes, kind, caller);
    const uint32_t self = block.index * block.threads + fiber_here.linear, from = offset_of((void*)caller);
    const uint32_t now = block.fibers[block.running].now;
    for (uintptr_t byte = first; byte < first + bytes; ++byte) {
        Cell& cell = region->cells[byte];
        check_writer(*region, cell, region->start + byte, kind, caller);
        if (kind == READ) {
            note_reader(*region, cell, self, now, from);
            continue;
        }
        check_readers(*region, cell, region->start + byte, VERBS[kind], caller);
        cell = {self, kind == UPDATE ? now | ATOMIC : now, from, 0, 0, 0};
    }
}

// A read that an atomic of the same thread on the same place follows is part of it.
void forget_reads(const volatile void* address, uintptr_t bytes) {
    const uintptr_t at = (uintptr_t)address;
    const Region* const region = find(at);
    if (!region || at < region->start || at + bytes > region->start + region->bytes) return;
    const uint32_t self = block.index * block.threads + fiber_here.linear;
    std::vector<Doubt>& doubts = block.fibers[block.running].doubts;
    const auto is_here = [&](const Doubt& doubt) { return doubt.at >= at && doubt.at < at + bytes; };
    doubts.erase(std::remove_if(doubts.begin(), doubts.end(), is_here), doubts.end());
    for (Cell* cell = region->cells + (at - region->start); bytes--; ++cell) {
        if (cell->read && cell->read != MANY && cell->reader == self) cell->read = 0;
        if (cell->read != MANY) continue;
        std::vector<Reader>& readers = crowds[cell->reader].readers;
        const auto is_mine = [&](const Reader& reader) { return reader.thread == self; };
        readers.erase(std::remove_if(readers.begin(), readers.end(), is_mine), readers.end());
        if (readers.empty()) cell->read = 0;
    }
}

void note_written(const volatile void* at, uintptr_t bytes) {
    const Region* const region = find((uintptr_t)at);
    if (!region || !region->ready) return;
    const uintptr_t first = (uintptr_t)at - region->start;
    if (first < region->bytes) memset(region->ready + first, 1, std::min(bytes, region->bytes - first));
}
}  // namespace

void settle_doubts() {
    const std::vector<Doubt>& doubts = block.fibers[block.running].doubts;
    if (doubts.empty()) return;
    const Doubt& doubt = doubts.front();
    fail_race(*find(doubt.at), doubt.at, "reads", "updates", doubt.thread, doubt.code, doubt.caller);
}

const char* describe(uintptr_t at) {
    static char text[256];
    const Region* const region = find(at);
    if (!region)
        snprintf(text, sizeof text, "at %p, which is no buffer of this launch", (void*)at);
    else if (at < region->start)
        snprintf(text, sizeof text, "%lu bytes before the start of %s", region->start - at, region->name);
    else if (at >= region->start + region->bytes)
        snprintf(text, sizeof text, "%lu bytes past the end of %s, which has %lu", at - region->start - region->bytes, region->name,
                 region->bytes);
    else
        snprintf(text, sizeof text, "at byte %lu of %s", at - region->start, region->name);
    return text;
}

uint32_t offset_of(const void* code) { return (uint32_t)((uintptr_t)code - code_start); }

Knowledge merged(const Knowledge& a, const Knowledge& b) {
    if (!b || a == b) return a;
    if (!a) return b;
    auto both = std::make_shared<Known>(*a);
    for (const auto& [of_block, times] : *b) {
        Times& mine = (*both)[of_block];
        if (!mine) mine = times;
        if (mine == times) continue;
        auto latest = std::make_shared<std::vector<uint32_t>>(*mine);
        for (unsigned i = 0; i < block.threads; ++i) (*latest)[i] = std::max((*latest)[i], (*times)[i]);
        mine = latest;
    }
    return both;
}

static std::vector<fiber_variable*> variables_of(const fiber_program& program) {
    std::vector<fiber_variable*> all;
    for (const fiber_variable* each = program.common; each < program.common_end; ++each) all.push_back((fiber_variable*)each);
    for (const fiber_variable* each = program.own; each < program.own_end; ++each) all.push_back((fiber_variable*)each);
    return all;
}

static unsigned long after(unsigned long offset, const fiber_variable& variable, unsigned long bytes) {
    return (offset + variable.align - 1) / variable.align * variable.align + bytes;
}

// Shared variables get no better alignment than their type asks for, and a gap around each.
void lay_out(const fiber_program& program, const unsigned long* dynamic, unsigned long limit) {
    if (!arena) {
        char* const made = (char*)zeros(ARENA + 2 * EDGE);
        if (!made) return record_failure("no memory for shared memory");
        mprotect(made, EDGE, PROT_NONE);
        mprotect(made + EDGE + ARENA, EDGE, PROT_NONE);
        arena = made + EDGE;
    }
    for (Region& region : shared) release(region);
    shared.clear();
    const std::vector<fiber_variable*> all = variables_of(program);
    std::map<unsigned, unsigned long> alignment;
    for (const fiber_variable* each : all)
        if (each->dynamic) alignment[each->dynamic] = std::max(alignment[each->dynamic], each->align);
    std::map<unsigned, char*> places;
    unsigned long offset = GAP, total = 0;
    for (fiber_variable* each : all) {
        if (each->dynamic && places.count(each->dynamic)) {
            each->address = places[each->dynamic];
            continue;
        }
        const unsigned long align = each->dynamic ? alignment[each->dynamic] : each->align;
        const unsigned long bytes = each->dynamic ? dynamic[each->dynamic - 1] : each->bytes;
        total = after(total, *each, bytes);
        if (total > limit)
            return record_failure("too much shared memory: %s ends at byte %lu, and a block may have %lu", each->name, total,
                                  limit);
        offset = (offset + GAP - 1) / GAP * GAP + (align < GAP ? align : 0);
        each->address = arena + offset;
        if (each->dynamic) places[each->dynamic] = each->address;
        const uintptr_t start = (uintptr_t)each->address;
        shared.push_back(made_region(each->name, start, bytes, start - GAP / 2, start + bytes + GAP, 0, false));
        if (!bytes) shared.back().bytes = 0;
        offset += bytes + GAP;
    }
    homes.clear();
    for (fiber_variable* each : all) homes.push_back({each, each->address});
    span = (offset + GAP - 1) / GAP * GAP;
    entered = 0;
    if (span * program.cluster > ARENA) return record_failure("too many blocks for the room of a cluster");
    const size_t count = shared.size();
    for (unsigned number = 1; number < program.cluster; ++number)
        for (size_t i = 0; i < count; ++i) {
            const uintptr_t start = shared[i].start + number * span, bytes = shared[i].bytes;
            shared.push_back(made_region(shared[i].name, start, bytes, start, start + bytes, 0, false));
            shared.back().bytes = bytes;
        }
    std::sort(shared.begin(), shared.end(), [](const Region& a, const Region& b) { return a.start < b.start; });
    for (size_t i = 0; i < shared.size(); ++i) {
        const uintptr_t end = shared[i].start + shared[i].bytes;
        shared[i].low = i ? shared[i - 1].high : (uintptr_t)arena - EDGE;
        shared[i].high = i + 1 < shared.size() ? (end + shared[i + 1].start) / 2 : (uintptr_t)arena + ARENA + EDGE;
    }
    regions = shared;
    regions.insert(regions.end(), buffers.begin(), buffers.end());
    latest_region = nullptr;
}

void enter_block(unsigned number) {
    if (number == entered) return;
    entered = number;
    for (const auto& [variable, home] : homes) variable->address = home + number * span;
}

void begin_launch(const void* body) {
    Dl_info library;
    code_start = dladdr(body, &library) ? (uintptr_t)library.dli_fbase : 0;
    published.clear();
    crowds.clear();
    for (Region& region : buffers) madvise(region.cells, region.bytes * sizeof(Cell), MADV_DONTNEED);
}

void begin_block(int poison) {
    for (Region& region : shared) {
        memset((void*)region.start, poison, region.bytes);
        memset(region.cells, 0, region.bytes * sizeof(Cell));
        memset(region.ready, 0, region.bytes);
        published.erase(published.lower_bound(region.start), published.upper_bound(region.start + region.bytes));
    }
}
}  // namespace fibers

using namespace fibers;

extern "C" unsigned long fiber_shared_bytes(const fiber_program* program) {
    unsigned long total = 0;
    for (const fiber_variable* each : variables_of(*program))
        if (!each->dynamic) total = after(total, *each, each->bytes);
    return total;
}

// Buffers of the launches that follow. ready: whether what is in it may be read before it is written.
extern "C" void fiber_add_buffer(const char* name, uintptr_t start, uintptr_t bytes, uintptr_t low, uintptr_t high, int ready) {
    buffers.push_back(made_region(strdup(name), start, bytes, low, high, 1, ready));
    buffers.back().bytes = bytes;
}

extern "C" void fiber_forget_buffers() {
    for (Region& region : buffers) {
        release(region);
        free((void*)region.name);
    }
    buffers.clear();
}

extern "C" void* fiber_other(const void* at, unsigned number) { return (char*)at + ((long)number - (long)entered) * (long)span; }

extern "C" void fiber_fence() {
    Fiber& fiber = block.fibers[block.running];
    fiber.known = merged(fiber.known, fiber.pending);
    auto passed = std::make_shared<std::vector<uint32_t>>(block.threads, block.floor[1]);
    std::vector<uint32_t>& times = *passed;
    for (unsigned lane = 0; lane < WARP && fiber_here.warp * WARP + lane < block.threads; ++lane) {
        uint32_t& time = times[fiber_here.warp * WARP + lane];
        time = std::max(time, fiber.row[1][lane]);
    }
    times[(unsigned)block.running] = fiber.now++;
    const Known mine = {{block.index, passed}};
    fiber.published = merged(fiber.known, std::make_shared<const Known>(mine));
}

extern "C" void fiber_atomic(const volatile void* at, unsigned long bytes, int is_store, void* caller) {
    if (block.running < 0) return;
    forget_reads(at, bytes);
    if (switch_at_atomics) yield();
    if (is_store) note_written(at, bytes);
    access(at, bytes, bytes, UPDATE, caller);
    Fiber& fiber = block.fibers[block.running];
    Knowledge& there = published[(uintptr_t)at];
    there = merged(there, fiber.published);
    fiber.pending = merged(fiber.pending, there);
}

#define CALLER __builtin_return_address(0)
#define SIZED(bytes, aligned)                                                                              \
    extern "C" void __tsan_read##bytes(void* at) { access(at, bytes, aligned, READ, CALLER); }             \
    extern "C" void __tsan_write##bytes(void* at) { access(at, bytes, aligned, WRITE, CALLER); }           \
    extern "C" void __tsan_unaligned_read##bytes(void* at) { access(at, bytes, 1, READ, CALLER); }         \
    extern "C" void __tsan_unaligned_write##bytes(void* at) { access(at, bytes, 1, WRITE, CALLER); }
// Of a volatile variable: an atomic on its own, after which another thread may run, or loops that wait would not end.
#define VOLATILE(bytes)                                                                                    \
    extern "C" void __tsan_volatile_read##bytes(void* at) {                                                \
        if (block.running >= 0 && !switch_at_atomics) yield();                                             \
        fiber_atomic(at, bytes, 0, CALLER);                                                                \
    }                                                                                                      \
    extern "C" void __tsan_volatile_write##bytes(void* at) { fiber_atomic(at, bytes, 1, CALLER); }
VOLATILE(1)
VOLATILE(2)
VOLATILE(4)
VOLATILE(8)
#undef VOLATILE
SIZED(1, 1)
SIZED(2, 2)
SIZED(4, 4)
SIZED(8, 8)
SIZED(16, 8)  // compilers call it for 16 bytes that are aligned to 8
#undef SIZED
extern "C" void __tsan_read_range(void* at, unsigned long bytes) { access(at, bytes, 1, READ, CALLER); }
extern "C" void __tsan_write_range(void* at, unsigned long bytes) { access(at, bytes, 1, WRITE, CALLER); }
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_vptr_read(void**) {}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
    access(from, bytes, 1, READ, CALLER);
    access(to, bytes, 1, WRITE, CALLER);
    return memcpy(to, from, bytes);
}
extern "C" void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
    access(from, bytes, 1, READ, CALLER);
    access(to, bytes, 1, WRITE, CALLER);
    return memmove(to, from, bytes);
}
extern "C" void* __tsan_memset(void* to, int value, unsigned long bytes) {
    access(to, bytes, 1, WRITE, CALLER);
    return memset(to, value, bytes);
}
