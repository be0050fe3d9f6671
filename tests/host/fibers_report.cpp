// Says what went wrong and where: failures of the runtime, undefined behaviour that a sanitizer found, and signals.
//
// Programs are compiled with -fsanitize=undefined -fno-sanitize-recover and linked with the handlers below instead of the
// sanitizer's runtime, so that a report names the thread too, and needs no library beside the compiler.
#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fibers_inside.hpp"

namespace fibers {
namespace {
char text[2048];
}

void forget_failure() { text[0] = 0; }
const char* failure() { return text[0] ? text : nullptr; }

static void append(const char* format, va_list values) {
    const size_t used = strlen(text);
    vsnprintf(text + used, sizeof text - used, format, values);
}

void record_failure(const char* format, ...) {
    va_list values;
    va_start(values, format);
    append(format, values);
    va_end(values);
}

void fail(const char* format, ...) {
    va_list values;
    va_start(values, format);
    append(format, values);
    va_end(values);
    if (block.running < 0) {  // not in a block program
        fprintf(stderr, "%s\n", text);
        abort();
    }
    leave();
}

static void numbers(char* out, size_t room, unsigned index, const fiber_dim& shape) {
    if (shape.y == 1 && shape.z == 1)
        snprintf(out, room, "%u", index);
    else
        snprintf(out, room, "(%u,%u,%u)", index % shape.x, index / shape.x % shape.y, index / shape.x / shape.y);
}

const char* place(unsigned thread) {
    static char texts[4][128];
    static unsigned next;
    char* const out = texts[next++ % 4];
    char of_block[40], in_block[40];
    numbers(in_block, sizeof in_block, thread % block.threads, fiber_here.threads);
    numbers(of_block, sizeof of_block, thread / block.threads, fiber_here.blocks);
    snprintf(out, sizeof texts[0], "thread %s of block %s", in_block, of_block);
    return out;
}

const char* here() { return place(block.index * block.threads + fiber_here.linear); }

// --- undefined behaviour

namespace {
struct Source { const char* file; unsigned line, column; };
struct Mismatch { Source at; const void* type; unsigned char log_alignment, kind; };

[[noreturn]] void undefined(const Source& at, const char* what) {
    const char* const slash = strrchr(at.file ? at.file : "?", '/');
    fail("%s: %s at %s:%u:%u", what, block.running < 0 ? "host code" : here(), slash ? slash + 1 : at.file, at.line, at.column);
}
}  // namespace

extern "C" void __ubsan_handle_type_mismatch_v1_abort(const Mismatch* data, uintptr_t address) {
    char what[512];
    const uintptr_t alignment = (uintptr_t)1 << data->log_alignment;
    if (!address)
        snprintf(what, sizeof what, "null pointer");
    else if (address % alignment)
        snprintf(what, sizeof what, "misaligned access: alignment of %lu bytes is needed for the address %s", alignment,
                 describe(address));
    else
        snprintf(what, sizeof what, "too small an object %s", describe(address));
    undefined(data->at, what);
}

#define UNDEFINED(name, words) \
    extern "C" void __ubsan_handle_##name##_abort(const Source* at) { undefined(*at, words); }
UNDEFINED(out_of_bounds, "index out of the bounds of an array")
UNDEFINED(shift_out_of_bounds, "shift count out of range")
UNDEFINED(add_overflow, "signed overflow")
UNDEFINED(sub_overflow, "signed overflow")
UNDEFINED(mul_overflow, "signed overflow")
UNDEFINED(negate_overflow, "signed overflow")
UNDEFINED(divrem_overflow, "division by zero or overflow")
UNDEFINED(float_cast_overflow, "conversion out of range")
UNDEFINED(load_invalid_value, "bool or enum with another value than it can have")
UNDEFINED(pointer_overflow, "pointer arithmetic out of range")
UNDEFINED(vla_bound_not_positive, "array of no positive length")
UNDEFINED(invalid_builtin, "zero given to a function that must not get it")
UNDEFINED(nonnull_arg, "null pointer")
UNDEFINED(builtin_unreachable, "code that cannot be reached was reached")
UNDEFINED(missing_return, "function without a return of its value")
#undef UNDEFINED
extern "C" void __ubsan_handle_builtin_unreachable(const Source* at) { __ubsan_handle_builtin_unreachable_abort(at); }
extern "C" void __ubsan_handle_missing_return(const Source* at) { __ubsan_handle_missing_return_abort(at); }
extern "C" void __ubsan_handle_nonnull_return_v1_abort(const void*, const Source* at) { undefined(*at, "null pointer"); }

// --- signals

static void on_signal(int number, siginfo_t* about, void*) {
    char said[1024];
    const char* what = number == SIGVTALRM ? "a launch does not end" : strsignal(number);
    const bool is_host = block.running < 0 && !(number == SIGVTALRM && block.fibers);  // or it is between two threads
    int length = snprintf(said, sizeof said, "%s: %s", what, is_host ? "host code" : here());
    if (number == SIGSEGV || number == SIGBUS)
        length += snprintf(said + length, sizeof said - (size_t)length, " touches memory %s",
                           describe((uintptr_t)about->si_addr));
    if (write(2, said, (size_t)length) != length) _exit(3);
    _exit(2);
}

// In a child of its own, which may take some seconds of CPU time.
extern "C" void fiber_report_signals(int seconds) {
    static char stack[1 << 16];
    stack_t other = {stack, 0, sizeof stack};
    sigaltstack(&other, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGVTALRM}) sigaction(number, &action, nullptr);
    const itimerval limit = {{0, 0}, {seconds, 0}};
    setitimer(ITIMER_VIRTUAL, &limit, nullptr);
}
}  // namespace fibers
