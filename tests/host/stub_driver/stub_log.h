/* What the stand-ins for CUDA's libraries share: a log of calls, and entries that fail when a test asks for it. */

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 1 << 20 };
#define API __attribute__((visibility("default")))

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

API const char *STUB_LOG(void) { return log_text; }
API void STUB_LOG_CLEAR(void) { log_length = 0; log_text[0] = 0; }

static int asked_to_fail(const char *entry) {               /* FUSEC_STUB_FAIL=entry=status,... */
  const char *text = getenv("FUSEC_STUB_FAIL");
  size_t length = strlen(entry);
  for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL)
    if (!strncmp(text, entry, length) && text[length] == '=') return atoi(text + length + 1);
  return 0;
}

#define ENTER(...) do { note("%s ", __func__); note(__VA_ARGS__); note("\n"); \
    int wanted = asked_to_fail(__func__); if (wanted) return wanted; } while (0)

extern int cuCtxGetDevice(int *device);

static int current(void) {
  int device = -1;
  return cuCtxGetDevice(&device) ? -1 : device;
}
