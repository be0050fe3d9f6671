/* A stand-in for cuBLAS where libcuda is one too: products of matrices in host memory, checked as cuBLAS checks them. */

#define STUB_LOG stub_cublas_log
#define STUB_LOG_CLEAR stub_cublas_log_clear
#include "stub_log.h"
#include "stub_lapack.h"

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };

struct handle { int device; void *stream, *workspace; size_t bytes; int math; };

API const char *cublasGetStatusName(int status) {
  switch (status) {
    case NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

API int cublasCreate_v2(struct handle **made) {
  ENTER("%d", current());
  *made = calloc(1, sizeof **made);
  (*made)->device = current();
  return SUCCESS;
}
API int cublasSetMathMode(struct handle *handle, int mode) { ENTER("%d", mode); handle->math = mode; return SUCCESS; }
API int cublasSetStream_v2(struct handle *handle, void *stream) {
  ENTER("%p", stream);
  handle->stream = stream;
  handle->workspace = NULL;
  return SUCCESS;
}
API int cublasSetWorkspace_v2(struct handle *handle, void *workspace, size_t bytes) {
  ENTER("%zu", bytes);
  if ((uintptr_t)workspace % 256) return INVALID_VALUE;
  handle->workspace = workspace;
  handle->bytes = bytes;
  return SUCCESS;
}

/* --- elements ------------------------------------------------------------------------------------------------- */

enum { R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, COMPUTE_64F = 70 };

static float from_bits(uint32_t bits) { float value; memcpy(&value, &bits, 4); return value; }
static uint32_t to_bits(float value) { uint32_t bits; memcpy(&bits, &value, 4); return bits; }

static double complex element(const void *array, int kind, int64_t at) {
  switch (kind) {
    case R_32F: return ((const float *)array)[at];
    case R_64F: return ((const double *)array)[at];
    case R_16F: return (double)((const _Float16 *)array)[at];
    case R_16BF: return from_bits((uint32_t)((const uint16_t *)array)[at] << 16);
    case C_32F: return ((const float complex *)array)[at];
    default: return ((const double complex *)array)[at];
  }
}

static void store(void *array, int kind, int64_t at, double complex value) {
  uint32_t bits;
  switch (kind) {
    case R_32F: ((float *)array)[at] = (float)creal(value); break;
    case R_64F: ((double *)array)[at] = creal(value); break;
    case R_16F: ((_Float16 *)array)[at] = (_Float16)creal(value); break;
    case R_16BF: bits = to_bits((float)creal(value)); ((uint16_t *)array)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); break;
    case C_32F: ((float complex *)array)[at] = (float complex)value; break;
    default: ((double complex *)array)[at] = value;
  }
}

static int bytes_of(int kind) { return kind == R_16F || kind == R_16BF ? 2 : kind == R_32F ? 4 : kind == C_64F ? 16 : 8; }

/* --- products ------------------------------------------------------------------------------------------------- */

static int is_known(int a, int b, int c, int compute) {
  int narrow = a == R_16F || a == R_16BF, wide = c == R_64F || c == C_64F;
  return a == b && (a == c || (narrow && c == R_32F)) && compute == (wide ? COMPUTE_64F : COMPUTE_32F);
}

static int multiply(struct handle *handle, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *alpha,
                    const char *a, int kind_a, int64_t lda, int64_t step_a, const char *b, int kind_b, int64_t ldb,
                    int64_t step_b, const void *beta, char *c, int kind_c, int64_t ldc, int64_t step_c, int64_t count,
                    int compute, int algorithm) {
  int scale = kind_c == C_32F || kind_c == C_64F || kind_c == R_64F ? kind_c : R_32F;
  if (!handle->workspace || !handle->stream || handle->math != 16 || algorithm != -1) return NOT_INITIALIZED;
  if (current() >= 0 && current() != handle->device) return NOT_INITIALIZED;
  if (!is_known(kind_a, kind_b, kind_c, compute)) return NOT_SUPPORTED;
  if (m < 1 || n < 1 || k < 1 || count < 1 || ta < 0 || ta > 1 || tb < 0 || tb > 1) return INVALID_VALUE;
  if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return INVALID_VALUE;
  if ((count > 1 && step_c < ldc) && (step_c < m || ldc < step_c * count)) return INVALID_VALUE;   /* results that overlap */
  if (element(alpha, scale, 0) != 1 || element(beta, scale, 0) != 0) return INVALID_VALUE;
  if ((uintptr_t)a % bytes_of(kind_a) || (uintptr_t)b % bytes_of(kind_b) || (uintptr_t)c % bytes_of(kind_c)) return INVALID_VALUE;
  for (int64_t each = 0; each < count; each++)
    for (int64_t column = 0; column < n; column++)
      for (int64_t row = 0; row < m; row++) {
        double complex total = 0;
        for (int64_t at = 0; at < k; at++)
          total += element(a, kind_a, each * step_a + (ta ? row * lda + at : at * lda + row)) *
                   element(b, kind_b, each * step_b + (tb ? at * ldb + column : column * ldb + at));
        store(c, kind_c, each * step_c + column * ldc + row, total);
      }
  return SUCCESS;
}

API int cublasGemmEx_64(struct handle *handle, int ta, int tb, int64_t m, int64_t n, int64_t k, const void *alpha,
                        const void *a, int kind_a, int64_t lda, const void *b, int kind_b, int64_t ldb,
                        const void *beta, void *c, int kind_c, int64_t ldc, int compute, int algorithm) {
  ENTER("%d %d %lld %lld %lld", ta, tb, (long long)m, (long long)n, (long long)k);
  return multiply(handle, ta, tb, m, n, k, alpha, a, kind_a, lda, 0, b, kind_b, ldb, 0, beta, c, kind_c, ldc, 0, 1,
                  compute, algorithm);
}

API int cublasGemmStridedBatchedEx_64(struct handle *handle, int ta, int tb, int64_t m, int64_t n, int64_t k,
                                      const void *alpha, const void *a, int kind_a, int64_t lda, long long step_a,
                                      const void *b, int kind_b, int64_t ldb, long long step_b, const void *beta,
                                      void *c, int kind_c, int64_t ldc, long long step_c, int64_t count, int compute,
                                      int algorithm) {
  ENTER("%d %d %lld %lld %lld times %lld", ta, tb, (long long)m, (long long)n, (long long)k, (long long)count);
  return multiply(handle, ta, tb, m, n, k, alpha, a, kind_a, lda, step_a, b, kind_b, ldb, step_b, beta, c, kind_c,
                  ldc, step_c, count, compute, algorithm);
}

/* --- many systems ---------------------------------------------------------------------------------------------- */

static int many_lu(struct handle *handle, int kind, int n, void **a, int lda, int *pivots, int *info, int count) {
  if (!handle->workspace || !handle->stream || (current() >= 0 && current() != handle->device)) return NOT_INITIALIZED;
  if (n < 1 || lda < n || count < 1) return INVALID_VALUE;
  int64_t *places = malloc(n * sizeof *places);
  for (int each = 0; each < count; each++) {
    number *values = loaded(a[each], kind, n, n, lda);
    info[each] = lu(values, n, places);
    for (int at = 0; at < n; at++) pivots[each * n + at] = (int)places[at] + 1;
    stored(a[each], kind, n, n, lda, values);
  }
  free(places);
  return SUCCESS;
}

static int many_solved(struct handle *handle, int kind, int transposed, int n, int columns, void **a, int lda,
                       const int *pivots, void **b, int ldb, int *info, int count) {
  if (!handle->workspace || !handle->stream || (current() >= 0 && current() != handle->device)) return NOT_INITIALIZED;
  if (transposed || n < 1 || columns < 1 || lda < n || ldb < n || count < 1) return INVALID_VALUE;
  int64_t *places = malloc(n * sizeof *places);
  for (int each = 0; each < count; each++) {
    number *values = loaded(a[each], kind, n, n, lda), *sides = loaded(b[each], kind, n, columns, ldb);
    for (int at = 0; at < n; at++) places[at] = pivots[each * n + at] - 1;
    for (int64_t c = 0; c < columns; c++) lu_solve(values, n, places, sides + c * n);
    stored(b[each], kind, n, columns, ldb, sides);
    free(values);
  }
  free(places);
  *info = 0;
  return SUCCESS;
}

#define MANY(letter, kind) \
  API int cublas##letter##getrfBatched(struct handle *handle, int n, void **a, int lda, int *pivots, int *info, int count) { \
    ENTER("%d times", count); \
    return many_lu(handle, kind, n, a, lda, pivots, info, count); \
  } \
  API int cublas##letter##getrsBatched(struct handle *handle, int transposed, int n, int columns, void **a, int lda, \
                                       const int *pivots, void **b, int ldb, int *info, int count) { \
    ENTER("%d times", count); \
    return many_solved(handle, kind, transposed, n, columns, a, lda, pivots, b, ldb, info, count); \
  }
MANY(S, R_32F)
MANY(D, R_64F)
MANY(C, C_32F)
MANY(Z, C_64F)
