/* A stand-in for libcuda.so.1 on machines without a GPU: just enough for cuda.core to run end to end.

   Memory is poisoned host memory, streams run at once, and a kernel is a function of a shared object made for the host:
       void NAME__host(const unsigned grid[3], const unsigned block[3], unsigned shared_bytes, void **params)
   or, if it is a block program (tests/host/fibers.hpp), NAME__blocks with NAME__shared, the bytes of its static shared
   memory, and NAME__threads, the most threads of a block. What such a program does wrong is an error of the context, as on
   a device: launches, copies and synchronisations return it from then on, until stub_forget_fault().
   A cubin is matched to its shared object by the FNV-1a hash of its bytes: $FUSEC_STUB_KERNELS/<16 hex digits>.so;
   an image without one loads, and its launches do nothing. Text after a cubin that starts with TWIN: and ends with a
   zero is hashed too, since different texts may compile to one and the same cubin.

   Environment: FUSEC_STUB_DEVICES  number of devices (default 1; 0 makes cuInit fail as the real driver does)
                FUSEC_STUB_ARCH     compute capability of all devices, e.g. 90 (the default)
                FUSEC_STUB_VERSION  what cuDriverGetVersion says (default 13050)
                FUSEC_STUB_ORDER    the order of threads in block programs (default 2, a shuffle)
                FUSEC_STUB_FAIL     entries that fail and with what, e.g. "cuLaunchKernel=700,cuMemAllocFromPoolAsync=2"
   Every call is appended to a text that stub_log() returns and stub_log_clear() empties. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef uint64_t CUdeviceptr;
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
       INVALID_IMAGE = 200, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, OUT_OF_RESOURCES = 701, MISALIGNED_ADDRESS = 716,
       LAUNCH_FAILED = 719, NOT_SUPPORTED = 801 };
enum { SHARED_BYTES = 49152, SHARED_BYTES_ASKED_FOR = 232448, PADDING = 512 };
enum { MAX_DEVICES = 8, MAX_BLOCKS = 4096, LOG_BYTES = 1 << 20 };
#define API __attribute__((visibility("default"))) CUresult

/* --- log, settings, failures asked for ------------------------------------------------------------------------ */

static char log_text[LOG_BYTES];
static size_t log_length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *format, ...) {
  va_list values;
  va_start(values, format);
  pthread_mutex_lock(&lock);
  if (log_length < LOG_BYTES - 256) log_length += vsnprintf(log_text + log_length, 255, format, values);
  pthread_mutex_unlock(&lock);
  va_end(values);
}

__attribute__((visibility("default"))) const char *stub_log(void) { return log_text; }
__attribute__((visibility("default"))) void stub_log_clear(void) { log_length = 0; log_text[0] = 0; }

static int setting(const char *name, int standard) {
  const char *text = getenv(name);
  return text ? atoi(text) : standard;
}

static CUresult asked_to_fail(const char *entry) {
  const char *text = getenv("FUSEC_STUB_FAIL");
  size_t length = strlen(entry);
  for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
    if (!strncmp(text, entry, length) && text[length] == '=') return atoi(text + length + 1);
  return SUCCESS;
}

static CUresult fault;                                     /* of a kernel; it stays */
static char fault_text[2048];
__attribute__((visibility("default"))) const char *stub_fault(void) { return fault_text; }
__attribute__((visibility("default"))) void stub_forget_fault(void) { fault = SUCCESS; fault_text[0] = 0; }

#define ENTER(...) do { note("%s", __func__); note(" " __VA_ARGS__); note("\n"); \
    CUresult wanted = asked_to_fail(__func__); if (wanted) return wanted; } while (0)

/* --- devices and contexts ------------------------------------------------------------------------------------- */

struct context { int device; };
static struct context primary[MAX_DEVICES];
static __thread struct context *stack[64];
static __thread int depth;

static int device_count(void) { return setting("FUSEC_STUB_DEVICES", 1); }
static struct context *current(void) { return depth ? stack[depth - 1] : NULL; }

API cuInit(unsigned flags) { (void)flags; ENTER(""); return device_count() ? SUCCESS : NO_DEVICE; }
API cuDriverGetVersion(int *version) { *version = setting("FUSEC_STUB_VERSION", 13050); return SUCCESS; }
API cuDeviceGetCount(int *count) { *count = device_count(); return SUCCESS; }
API cuDeviceGet(int *device, int ordinal) {
  if (ordinal < 0 || ordinal >= device_count()) return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}
API cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "stub device %d", device); return SUCCESS; }
API cuDeviceGetUuid(void *uuid, int device) { memset(uuid, device + 1, 16); return SUCCESS; }
API cuDeviceTotalMem(size_t *bytes, int device) { (void)device; *bytes = (size_t)1 << 33; return SUCCESS; }
API cuDeviceGetAttribute(int *value, int attribute, int device) {
  int arch = setting("FUSEC_STUB_ARCH", 90);
  (void)device;
  switch (attribute) {
    case 1: case 2: case 3: *value = 1024; break;          /* threads per block, block dimensions x and y */
    case 4: *value = 64; break;                            /* block dimension z */
    case 5: *value = 2147483647; break;                    /* grid dimension x */
    case 6: case 7: *value = 65535; break;                 /* grid dimensions y and z */
    case 8: *value = SHARED_BYTES; break;                  /* shared memory per block */
    case 97: *value = SHARED_BYTES_ASKED_FOR; break;       /* the same, if a function asks for more */
    case 10: *value = 32; break;                           /* warp size */
    case 16: *value = 4; break;                            /* multiprocessors: few, so that grid strides are exercised */
    case 39: *value = 2048; break;                         /* threads per multiprocessor */
    case 75: *value = arch / 10; break;
    case 76: *value = arch % 10; break;
    default: *value = 1;
  }
  return SUCCESS;
}
API cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER("%d", device);
  primary[device].device = device;
  *context = &primary[device];
  return SUCCESS;
}
API cuDevicePrimaryCtxRelease(int device) { (void)device; return SUCCESS; }
API cuCtxGetCurrent(void **context) { *context = current(); return SUCCESS; }
API cuCtxSetCurrent(void *context) {
  if (!depth) depth = 1;
  stack[depth - 1] = context;
  return SUCCESS;
}
API cuCtxPushCurrent(void *context) { ENTER("%d", ((struct context *)context)->device); stack[depth++] = context; return SUCCESS; }
API cuCtxPopCurrent(void **context) {
  ENTER("");
  if (!depth) return INVALID_CONTEXT;
  if (context) *context = current();
  depth--;
  return SUCCESS;
}
API cuCtxGetDevice(int *device) {
  if (!current()) return INVALID_CONTEXT;
  *device = current()->device;
  return SUCCESS;
}
API cuCtxSynchronize(void) { return fault; }
API cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return SUCCESS; }

/* --- streams and events --------------------------------------------------------------------------------------- */

static CUresult new_handle(void **handle) {
  if (!current()) return INVALID_CONTEXT;
  struct context **made = malloc(sizeof *made);
  *made = current();
  *handle = made;
  return SUCCESS;
}
API cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) { (void)flags; (void)priority; ENTER(""); return new_handle(stream); }
API cuStreamCreate(void **stream, unsigned flags) { (void)flags; return new_handle(stream); }
API cuStreamDestroy(void *stream) { if ((uintptr_t)stream > 2) free(stream); return SUCCESS; }
API cuStreamSynchronize(void *stream) { ENTER("%p", stream); return fault; }
API cuStreamQuery(void *stream) { (void)stream; return fault; }
API cuStreamGetCtx(void *stream, void **context) {
  *context = (uintptr_t)stream > 2 ? *(struct context **)stream : current();
  return SUCCESS;
}
API cuStreamGetFlags(void *stream, unsigned *flags) { (void)stream; *flags = 1; return SUCCESS; }
API cuStreamGetPriority(void *stream, int *priority) { (void)stream; *priority = 0; return SUCCESS; }
API cuStreamIsCapturing(void *stream, int *status) { (void)stream; *status = 0; return SUCCESS; }
API cuStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)flags; ENTER("%p %p", stream, event); return SUCCESS; }
API cuEventCreate(void **event, unsigned flags) { (void)flags; ENTER(""); return new_handle(event); }
API cuEventRecord(void *event, void *stream) { ENTER("%p %p", event, stream); return SUCCESS; }
API cuEventSynchronize(void *event) { (void)event; return fault; }
API cuEventQuery(void *event) { (void)event; return SUCCESS; }
API cuEventDestroy(void *event) { free(event); return SUCCESS; }

/* --- memory --------------------------------------------------------------------------------------------------- */

struct block { CUdeviceptr start; size_t bytes; int device; };
static struct block blocks[MAX_BLOCKS];
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

static struct block *block_of(CUdeviceptr pointer) {
  for (int i = 0; i < MAX_BLOCKS; i++)
    if (blocks[i].start && pointer >= blocks[i].start && pointer < blocks[i].start + blocks[i].bytes) return &blocks[i];
  return NULL;
}
static CUresult new_block(CUdeviceptr *pointer, size_t bytes, int device) {
  void *memory;
  if (posix_memalign(&memory, 512, bytes + 2 * PADDING)) return OUT_OF_MEMORY;
  memset(memory, 0xEE, bytes + 2 * PADDING);
  memory = (char *)memory + PADDING;
  pthread_mutex_lock(&table);
  int i = 0;
  while (i < MAX_BLOCKS && blocks[i].start) i++;
  if (i < MAX_BLOCKS) blocks[i] = (struct block){(CUdeviceptr)memory, bytes ? bytes : 1, device};
  pthread_mutex_unlock(&table);
  if (i == MAX_BLOCKS) return OUT_OF_MEMORY;
  *pointer = (CUdeviceptr)memory;
  return SUCCESS;
}
static CUresult free_block(CUdeviceptr pointer) {
  pthread_mutex_lock(&table);
  struct block *found = block_of(pointer);
  const int known = found && found->start == pointer;
  if (known) found->start = 0;
  pthread_mutex_unlock(&table);
  if (!known) return INVALID_VALUE;
  free((char *)pointer - PADDING);
  return SUCCESS;
}
static int pools[MAX_DEVICES];

API cuMemAlloc(CUdeviceptr *pointer, size_t bytes) { ENTER("%zu", bytes); return current() ? new_block(pointer, bytes, current()->device) : INVALID_CONTEXT; }
API cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, void *stream) { (void)stream; return cuMemAlloc(pointer, bytes); }
API cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, void *pool, void *stream) {
  ENTER("%zu %p", bytes, stream);
  return new_block(pointer, bytes, (int)((int *)pool - pools));
}
API cuMemFree(CUdeviceptr pointer) { return free_block(pointer); }
API cuMemFreeAsync(CUdeviceptr pointer, void *stream) { ENTER("%p", stream); return free_block(pointer); }
API cuDeviceGetDefaultMemPool(void **pool, int device) { *pool = &pools[device]; return SUCCESS; }
API cuDeviceGetMemPool(void **pool, int device) { *pool = &pools[device]; return SUCCESS; }
API cuMemPoolCreate(void **pool, const void *properties) { (void)properties; *pool = &pools[0]; return SUCCESS; }
API cuMemPoolDestroy(void *pool) { (void)pool; return SUCCESS; }
API cuMemPoolGetAttribute(void *pool, int attribute, void *value) { (void)pool; (void)attribute; *(uint64_t *)value = 0; return SUCCESS; }
API cuMemPoolSetAttribute(void *pool, int attribute, void *value) { (void)pool; ENTER("%d %llu", attribute, *(unsigned long long *)value); return SUCCESS; }

static CUresult copy(void *to, const void *from, size_t bytes) {
  if (!fault) memmove(to, from, bytes);
  return fault;
}
API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return copy((void *)to, (void *)from, bytes); }
API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, void *stream) { (void)stream; return copy((void *)to, (void *)from, bytes); }
API cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) { return copy((void *)to, from, bytes); }
API cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) { return copy(to, (void *)from, bytes); }
API cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, void *stream) { (void)stream; ENTER("%zu", bytes); return copy((void *)to, from, bytes); }
API cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, void *stream) { (void)stream; ENTER("%zu", bytes); return copy(to, (void *)from, bytes); }
API cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, void *stream) { (void)stream; return copy((void *)to, (void *)from, bytes); }
API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, void *stream) { (void)stream; memset((void *)to, value, bytes); return SUCCESS; }

static CUresult pointer_attribute(void *value, int attribute, CUdeviceptr pointer, int strict) {
  struct block *found = block_of(pointer);
  if (!found && strict) return INVALID_VALUE;
  if (attribute == 1) *(void **)value = found ? &primary[found->device] : NULL;   /* context */
  else if (attribute == 2) *(unsigned *)value = found ? 2 : 0;                     /* memory type: device */
  else if (attribute == 9) *(int *)value = found ? found->device : -2;             /* device ordinal */
  else *(unsigned *)value = 0;
  return SUCCESS;
}
API cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer) { return pointer_attribute(value, attribute, pointer, 1); }
API cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr pointer) {
  for (unsigned i = 0; i < count; i++) pointer_attribute(values[i], attributes[i], pointer, 0);
  return SUCCESS;
}

/* --- libraries, kernels, launches ----------------------------------------------------------------------------- */

typedef void (*host_kernel)(const unsigned *, const unsigned *, unsigned, void **);
typedef const char *(*block_kernel)(const unsigned *, const unsigned *, const unsigned long *, unsigned long, int, int, void **);
typedef void (*add_buffer)(const char *, uintptr_t, uintptr_t, uintptr_t, uintptr_t, int);
struct kernel {
  host_kernel run;
  block_kernel blocks;
  add_buffer add;                                          /* of the runtime of block programs */
  void (*forget_buffers)(void);
  int threads, static_bytes, dynamic_bytes;                /* dynamic_bytes: the most that a launch may have */
  char name[224];
};
struct library { void *object; };

/* Bytes of an ELF file: to the end of whichever comes last, a section, or the table of sections or of segments. */
static size_t elf_bytes(const unsigned char *image) {
  uint64_t segments = *(uint64_t *)(image + 32), sections = *(uint64_t *)(image + 40);
  uint16_t segment_bytes = *(uint16_t *)(image + 54), segment_count = *(uint16_t *)(image + 56);
  uint16_t section_bytes = *(uint16_t *)(image + 58), section_count = *(uint16_t *)(image + 60);
  size_t end = sections + (size_t)section_bytes * section_count;
  if (segments + (size_t)segment_bytes * segment_count > end) end = segments + (size_t)segment_bytes * segment_count;
  for (unsigned i = 0; i < section_count; i++) {
    const unsigned char *section = image + sections + (size_t)i * section_bytes;
    uint64_t last = *(uint64_t *)(section + 24) + *(uint64_t *)(section + 32);
    if (*(uint32_t *)(section + 4) != 8 && last > end) end = last;                 /* 8: no bytes in the file */
  }
  return end;
}
__attribute__((visibility("default"))) uint64_t stub_image_hash(const unsigned char *image) {
  size_t bytes = memcmp(image, "\177ELF", 4) ? strlen((const char *)image) : elf_bytes(image);
  if (!strncmp((const char *)image + bytes, "TWIN:", 5)) bytes += strlen((const char *)image + bytes);
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ image[i]) * 0x100000001b3u;
  return hash;
}
API cuLibraryLoadData(void **library, const void *image, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  const char *folder = getenv("FUSEC_STUB_KERNELS");
  char path[4096];
  (void)a; (void)b; (void)c; (void)d; (void)e; (void)f;
  ENTER("%016llx", (unsigned long long)stub_image_hash(image));
  struct library *made = calloc(1, sizeof *made);
  snprintf(path, sizeof path, "%s/%016llx.so", folder ? folder : "", (unsigned long long)stub_image_hash(image));
  if (folder) made->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  *library = made;
  return SUCCESS;
}
API cuLibraryUnload(void *library) { free(library); return SUCCESS; }
API cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  struct library *from = library;
  char symbol[256];
  struct kernel *made = calloc(1, sizeof *made);
  ENTER("%s", name);
  snprintf(made->name, sizeof made->name, "%s", name);
  snprintf(symbol, sizeof symbol, "%s__host", name);
  made->threads = 1024;
  made->dynamic_bytes = SHARED_BYTES;
  *kernel = made;
  if (!from->object || (made->run = (host_kernel)dlsym(from->object, symbol))) return SUCCESS;
  snprintf(symbol, sizeof symbol, "%s__blocks", name);
  if (!(made->blocks = (block_kernel)dlsym(from->object, symbol))) return NOT_FOUND;
  snprintf(symbol, sizeof symbol, "%s__threads", name);
  made->threads = *(const int *)dlsym(from->object, symbol);
  snprintf(symbol, sizeof symbol, "%s__shared", name);
  made->static_bytes = (int)((unsigned long (*)(void))dlsym(from->object, symbol))();
  made->dynamic_bytes -= made->static_bytes;
  made->add = (add_buffer)dlsym(from->object, "fiber_add_buffer");
  made->forget_buffers = (void (*)(void))dlsym(from->object, "fiber_forget_buffers");
  return SUCCESS;
}
API cuKernelGetFunction(void **function, void *kernel) { *function = kernel; return SUCCESS; }
API cuKernelGetLibrary(void **library, void *kernel) { (void)kernel; *library = NULL; return SUCCESS; }
API cuFuncGetAttribute(int *value, int attribute, void *function) {
  const struct kernel *kernel = function;
  switch (attribute) {
    case 0: *value = setting("FUSEC_STUB_KERNEL_THREADS", kernel->threads); break;   /* threads per block */
    case 1: *value = kernel->static_bytes; break;                                    /* shared memory it declares */
    case 8: *value = kernel->dynamic_bytes; break;                                   /* most that a launch may add */
    default: *value = 0;
  }
  return SUCCESS;
}
API cuFuncSetAttribute(void *function, int attribute, int value) {
  struct kernel *kernel = function;
  ENTER("%s %d %d", kernel->name, attribute, value);
  if (attribute != 8) return SUCCESS;
  if (value < 0 || value + kernel->static_bytes > SHARED_BYTES_ASKED_FOR) return INVALID_VALUE;
  kernel->dynamic_bytes = value;
  return SUCCESS;
}
API cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) { (void)device; return cuFuncGetAttribute(value, attribute, kernel); }
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *kernel, int block, size_t dynamic) {
  (void)kernel; (void)dynamic;
  *count = 2048 / block;
  return SUCCESS;
}
API cuKernelSetAttribute(int attribute, int value, void *kernel, int device) { (void)device; return cuFuncSetAttribute(kernel, attribute, value); }

static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;          /* fibers of one launch at a time */

static void run_blocks(const struct kernel *kernel, const unsigned *grid, const unsigned *block, unsigned long shared_bytes, void **params) {
  char name[64];
  pthread_mutex_lock(&running);
  kernel->forget_buffers();
  for (int i = 0; i < MAX_BLOCKS; i++) {
    const struct block *each = &blocks[i];
    if (!each->start) continue;
    snprintf(name, sizeof name, "memory of %zu bytes", each->bytes);
    kernel->add(name, each->start, each->bytes, each->start - PADDING, each->start + each->bytes + PADDING, 1);
  }
  const unsigned long limit = kernel->static_bytes + shared_bytes;         /* checked by the caller */
  const char *said = kernel->blocks(grid, block, &shared_bytes, limit + 64, setting("FUSEC_STUB_ORDER", 2), 0xEE, params);
  if (said) {
    snprintf(fault_text, sizeof fault_text, "%s: %s", kernel->name, said);
    fault = strstr(said, "overrun") || strstr(said, "before the array") ? ILLEGAL_ADDRESS
          : strstr(said, "misaligned") ? MISALIGNED_ADDRESS : LAUNCH_FAILED;
  }
  pthread_mutex_unlock(&running);
}
API cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared_bytes, void *stream, void **params, void **extra) {
  struct kernel *kernel = function;
  unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  (void)extra;
  ENTER("%s grid %u block %u stream %p device %d", kernel->name, gx, bx, stream, current() ? current()->device : -1);
  if (!current()) return INVALID_CONTEXT;
  if (fault) return fault;
  if (!gx || !gy || !gz || !bx || !by || !bz || gx > 2147483647u || gy > 65535 || gz > 65535) return INVALID_VALUE;
  if (bx > 1024 || by > 1024 || bz > 64 || bx * by * bz > 1024) return INVALID_VALUE;
  if (bx * by * bz > (unsigned)kernel->threads) return OUT_OF_RESOURCES;
  if (shared_bytes > (unsigned)kernel->dynamic_bytes) return INVALID_VALUE;
  if (kernel->run) kernel->run(grid, block, shared_bytes, params);
  if (kernel->blocks) run_blocks(kernel, grid, block, shared_bytes, params);
  return SUCCESS;
}
struct launch_config { unsigned gx, gy, gz, bx, by, bz, shared_bytes; void *stream; void *attributes; unsigned count; };
API cuLaunchKernelEx(const struct launch_config *c, void *function, void **params, void **extra) {
  return cuLaunchKernel(function, c->gx, c->gy, c->gz, c->bx, c->by, c->bz, c->shared_bytes, c->stream, params, extra);
}

/* --- errors and entry points ---------------------------------------------------------------------------------- */

static const struct { int code; const char *name, *text; } errors[] = {
    {0, "CUDA_SUCCESS", "no error"}, {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}, {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}, {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}, {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"}, {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}, {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};
static int error_row(int code) {
  for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) return (int)i;
  return -1;
}
API cuGetErrorName(int code, const char **text) { int row = error_row(code); *text = row < 0 ? NULL : errors[row].name; return row < 0 ? INVALID_VALUE : SUCCESS; }
API cuGetErrorString(int code, const char **text) { int row = error_row(code); *text = row < 0 ? NULL : errors[row].text; return row < 0 ? INVALID_VALUE : SUCCESS; }

static CUresult not_supported(void) { note("an entry that the stub lacks\n"); return NOT_SUPPORTED; }

API cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
  Dl_info here;
  (void)version; (void)flags;
  dladdr((void *)cuGetProcAddress_v2, &here);
  void *self = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = dlsym(self, symbol);
  if (!*function) *function = (void *)not_supported;
  if (status) *status = 0;
  return SUCCESS;
}
API cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) { return cuGetProcAddress_v2(symbol, function, version, flags, NULL); }
API cuGetExportTable(const void **table, const void *id) { (void)id; *table = NULL; return NOT_FOUND; }
