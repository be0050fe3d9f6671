/* A stand-in for cuSOLVER where libcuda is one too: linear algebra in host memory, checked as cuSOLVER checks it. */

#define STUB_LOG stub_cusolver_log
#define STUB_LOG_CLEAR stub_cusolver_log_clear
#include "stub_log.h"
#include "stub_lapack.h"

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3, EXECUTION_FAILED = 6, HOST = 24 };

struct handle { int device; void *stream; };

API int cusolverDnCreate(struct handle **made) {
  ENTER("%d", current());
  *made = calloc(1, sizeof **made);
  (*made)->device = current();
  return SUCCESS;
}
API int cusolverDnSetStream(struct handle *handle, void *stream) { ENTER("%p", stream); handle->stream = stream; return SUCCESS; }
API int cusolverDnCreateParams(int **made) { ENTER("."); *made = malloc(4); **made = 1234; return SUCCESS; }

static int is_ready(const struct handle *handle) { return handle && handle->stream && (current() < 0 || current() == handle->device); }

static int real_of(int kind) { return kind == C_32F ? R_32F : kind == C_64F ? R_64F : kind; }
static int is_kind(int kind) { return kind == R_32F || kind == R_64F || kind == C_32F || kind == C_64F; }
static char *after(const void *array, int kind, int64_t count) { return (char *)array + count * bytes_of_kind(kind); }

/* What every function of the 64-bit interface is given; memory to work in is spoilt. */
static int lacks(const struct handle *handle, const int *params, void *work, size_t bytes, size_t wanted, void *host,
                 size_t host_bytes) {
  if (!is_ready(handle) || !params || *params != 1234) return NOT_INITIALIZED;
  if (!work || (uintptr_t)work % 16 || bytes != wanted || !host || host_bytes != HOST) return INVALID_VALUE;
  memset(work, 0xff, bytes);
  memset(host, 0xff, host_bytes);
  return SUCCESS;
}
#define NEEDS(...) do { int lack = lacks(__VA_ARGS__); if (lack) return lack; } while (0)
#define VALID(...) do { if (!(__VA_ARGS__)) return INVALID_VALUE; } while (0)
#define ASKED(size) do { *bytes = (size), *host_bytes = HOST; return SUCCESS; } while (0)
#define WORK void *work, size_t bytes, void *host, size_t host_bytes, int *info
#define GIVEN struct handle *handle, int *params

/* --- factors -------------------------------------------------------------------------------------------------- */

API int cusolverDnXpotrf_bufferSize(GIVEN, int fill, int64_t n, int kind, const void *a, int64_t lda, int compute,
                                    size_t *bytes, size_t *host_bytes) {
  VALID(handle && *params == 1234 && fill >= 0 && n > 0 && is_kind(kind) && !a && lda >= n && compute == kind);
  ASKED(64 * n);
}
API int cusolverDnXpotrf(GIVEN, int fill, int64_t n, int kind, void *a, int64_t lda, int compute, WORK) {
  ENTER("%lld", (long long)n);
  VALID(fill >= 0 && fill <= 1 && n > 0 && is_kind(kind) && lda >= n && compute == kind);
  NEEDS(handle, params, work, bytes, 64 * n, host, host_bytes);
  number *values = loaded(a, kind, n, n, lda);
  *info = cholesky(values, n, fill);
  stored(a, kind, n, n, lda, values);
  return SUCCESS;
}

static int many_cholesky(struct handle *handle, int kind, int fill, int n, void **a, int lda, int *info, int count) {
  if (!is_ready(handle)) return NOT_INITIALIZED;
  VALID(fill >= 0 && fill <= 1 && n > 0 && lda >= n && count > 0);
  for (int at = 0; at < count; at++) {
    number *values = loaded(a[at], kind, n, n, lda);
    info[at] = cholesky(values, n, fill);
    stored(a[at], kind, n, n, lda, values);
  }
  return SUCCESS;
}
#define MANY_CHOLESKY(letter, kind) \
  API int cusolverDn##letter##potrfBatched(struct handle *handle, int fill, int n, void **a, int lda, int *info, int count) { \
    ENTER("%d times", count); \
    return many_cholesky(handle, kind, fill, n, a, lda, info, count); \
  }
MANY_CHOLESKY(S, R_32F)
MANY_CHOLESKY(D, R_64F)
MANY_CHOLESKY(C, C_32F)
MANY_CHOLESKY(Z, C_64F)

API int cusolverDnXgetrf_bufferSize(GIVEN, int64_t m, int64_t n, int kind, const void *a, int64_t lda, int compute,
                                    size_t *bytes, size_t *host_bytes) {
  VALID(handle && *params == 1234 && m == n && n > 0 && is_kind(kind) && !a && lda >= n && compute == kind);
  ASKED(32 * n);
}
API int cusolverDnXgetrf(GIVEN, int64_t m, int64_t n, int kind, void *a, int64_t lda, int64_t *pivots, int compute, WORK) {
  ENTER("%lld", (long long)n);
  VALID(m == n && n > 0 && is_kind(kind) && lda >= n && compute == kind);
  NEEDS(handle, params, work, bytes, 32 * n, host, host_bytes);
  number *values = loaded(a, kind, n, n, lda);
  *info = lu(values, n, pivots);
  for (int64_t at = 0; at < n; at++) pivots[at]++;
  stored(a, kind, n, n, lda, values);
  return SUCCESS;
}
API int cusolverDnXgetrs(GIVEN, int transposed, int64_t n, int64_t columns, int kind, const void *a, int64_t lda,
                         const int64_t *pivots, int kind_b, void *b, int64_t ldb, int *info) {
  ENTER("%lld", (long long)columns);
  VALID(*params == 1234 && !transposed && n > 0 && columns > 0 && is_kind(kind) && kind_b == kind && lda >= n && ldb >= n);
  if (!is_ready(handle)) return NOT_INITIALIZED;
  number *values = loaded(a, kind, n, n, lda), *sides = loaded(b, kind, n, columns, ldb);
  int64_t *places = malloc(n * sizeof *places);
  for (int64_t at = 0; at < n; at++) places[at] = pivots[at] - 1;
  for (int64_t c = 0; c < columns; c++) lu_solve(values, n, places, sides + c * n);
  free(values), free(places);
  stored(b, kind, n, columns, ldb, sides);
  *info = 0;
  return SUCCESS;
}

API int cusolverDnXgeqrf_bufferSize(GIVEN, int64_t m, int64_t n, int kind, const void *a, int64_t lda, int kind_tau,
                                    const void *tau, int compute, size_t *bytes, size_t *host_bytes) {
  VALID(handle && *params == 1234 && m > 0 && n > 0 && is_kind(kind) && kind_tau == kind && !a && !tau && lda >= m &&
        compute == kind);
  ASKED(16 * n);
}
API int cusolverDnXgeqrf(GIVEN, int64_t m, int64_t n, int kind, void *a, int64_t lda, int kind_tau, void *tau,
                         int compute, WORK) {
  ENTER("%lld %lld", (long long)m, (long long)n);
  VALID(m > 0 && n > 0 && is_kind(kind) && kind_tau == kind && lda >= m && compute == kind);
  NEEDS(handle, params, work, bytes, 16 * n, host, host_bytes);
  int64_t few = m < n ? m : n;
  number *values = loaded(a, kind, m, n, lda), *factors = malloc(few * sizeof *factors);
  householder(values, m, n, factors);
  stored(a, kind, m, n, lda, values);
  stored(tau, kind, few, 1, few, factors);
  *info = 0;
  return SUCCESS;
}

static int orthogonal_of(struct handle *handle, int kind, int m, int n, int k, void *a, int lda, const void *tau,
                         void *work, int elements, int *info) {
  if (!is_ready(handle)) return NOT_INITIALIZED;
  VALID(m >= n && n >= k && k > 0 && lda >= m && elements == 8 * n && work);
  memset(work, 0xff, elements * bytes_of_kind(kind));
  number *values = loaded(a, kind, m, n, lda), *factors = loaded(tau, kind, k, 1, k);
  orthogonal(values, m, n, k, factors);
  stored(a, kind, m, n, lda, values);
  free(factors);
  *info = 0;
  return SUCCESS;
}
#define ORTHOGONAL(name, kind) \
  API int cusolverDn##name##_bufferSize(struct handle *handle, int m, int n, int k, const void *a, int lda, \
                                        const void *tau, int *elements) { \
    VALID(handle && m >= n && n >= k && k > 0 && !a && lda >= m && !tau); \
    *elements = 8 * n; \
    return SUCCESS; \
  } \
  API int cusolverDn##name(struct handle *handle, int m, int n, int k, void *a, int lda, const void *tau, void *work, \
                           int elements, int *info) { \
    ENTER("%d %d %d", m, n, k); \
    return orthogonal_of(handle, kind, m, n, k, a, lda, tau, work, elements, info); \
  }
ORTHOGONAL(Sorgqr, R_32F)
ORTHOGONAL(Dorgqr, R_64F)
ORTHOGONAL(Cungqr, C_32F)
ORTHOGONAL(Zungqr, C_64F)

/* --- values and vectors ---------------------------------------------------------------------------------------- */

static void put_reals(void *array, int kind, int64_t count, const double *values) {
  for (int64_t at = 0; at < count; at++) put(array, kind, at, values[at]);
}
static int is_finite(const number *values, int64_t count) {
  for (int64_t at = 0; at < count; at++) if (!isfinite(creal(values[at])) || !isfinite(cimag(values[at]))) return 0;
  return 1;
}

#define SINGULAR(CONST) GIVEN, signed char jobu, signed char jobvt, int64_t m, int64_t n, int kind, CONST void *a, \
  int64_t lda, int kind_s, CONST void *s, int kind_u, CONST void *u, int64_t ldu, int kind_vt, CONST void *vt, \
  int64_t ldvt, int compute
#define SINGULAR_VALID (jobu == jobvt && strchr("ASN", jobu) && m >= n && n > 0 && is_kind(kind) && lda >= m && \
  kind_s == real_of(kind) && kind_u == kind && kind_vt == kind && ldu >= m && ldvt >= n && compute == kind)

API int cusolverDnXgesvd_bufferSize(SINGULAR(const), size_t *bytes, size_t *host_bytes) {
  VALID(SINGULAR_VALID && !a && !s && !u && !vt && handle && *params == 1234);
  ASKED(48 * n);
}
API int cusolverDnXgesvd(SINGULAR(), WORK) {
  ENTER("%c %lld %lld", jobu, (long long)m, (long long)n);
  VALID(SINGULAR_VALID);
  NEEDS(handle, params, work, bytes, 48 * n, host, host_bytes);
  number *values = loaded(a, kind, m, n, lda), *left = malloc(m * m * sizeof *left), *right = malloc(n * n * sizeof *right);
  double *found = malloc(n * sizeof *found);
  *info = !is_finite(values, m * n);
  singular(values, m, n, left, found, right);
  for (int64_t at = 0; at < m * n; at++) values[at] = NAN;
  stored(a, kind, m, n, lda, values);
  put_reals(s, kind_s, n, found);
  if (jobu == 'N') free(left);
  else stored(u, kind, m, jobu == 'A' ? m : n, ldu, left);
  for (int64_t r = 0; r < n && jobu != 'N'; r++)
    for (int64_t c = 0; c < n; c++) put(vt, kind, c * ldvt + r, conj(right[r * n + c]));
  free(right), free(found);
  return SUCCESS;
}

#define HERMITIAN(CONST) GIVEN, int job, int fill, int64_t n, int kind, CONST void *a, int64_t lda, int kind_w, \
  CONST void *w, int compute
#define HERMITIAN_VALID (job >= 0 && job <= 1 && fill >= 0 && fill <= 1 && n > 0 && is_kind(kind) && lda >= n && \
  kind_w == real_of(kind) && compute == kind)

static void hermitian_of(int job, int fill, int64_t n, int kind, void *a, int64_t lda, void *w, int *info) {
  number *values = loaded(a, kind, n, n, lda);
  double *found = malloc(n * sizeof *found);
  *info = !is_finite(values, n * n);
  hermitian(values, n, fill, found);
  for (int64_t at = 0; !job && at < n * n; at++) values[at] = NAN;
  stored(a, kind, n, n, lda, values);
  put_reals(w, real_of(kind), n, found);
  free(found);
}
API int cusolverDnXsyevd_bufferSize(HERMITIAN(const), size_t *bytes, size_t *host_bytes) {
  VALID(HERMITIAN_VALID && !a && !w && handle && *params == 1234);
  ASKED(80 * n);
}
API int cusolverDnXsyevd(HERMITIAN(), WORK) {
  ENTER("%lld", (long long)n);
  VALID(HERMITIAN_VALID);
  NEEDS(handle, params, work, bytes, 80 * n, host, host_bytes);
  hermitian_of(job, fill, n, kind, a, lda, w, info);
  return SUCCESS;
}
API int cusolverDnXsyevBatched_bufferSize(HERMITIAN(const), size_t *bytes, size_t *host_bytes, int64_t count) {
  VALID(HERMITIAN_VALID && !a && !w && handle && *params == 1234 && count > 0);
  ASKED(80 * n * count);
}
API int cusolverDnXsyevBatched(HERMITIAN(), WORK, int64_t count) {
  ENTER("%lld %lld times", (long long)n, (long long)count);
  VALID(HERMITIAN_VALID);
  NEEDS(handle, params, work, bytes, 80 * n * count, host, host_bytes);
  for (int64_t at = 0; at < count; at++)
    hermitian_of(job, fill, n, kind, after(a, kind, at * lda * n), lda, after(w, kind_w, at * n), info + at);
  return SUCCESS;
}

#define GENERAL(CONST) GIVEN, int job_left, int job, int64_t n, int kind, CONST void *a, int64_t lda, int kind_w, \
  CONST void *w, int kind_left, CONST void *left, int64_t ld_left, int kind_right, CONST void *right, int64_t ld_right, \
  int compute
#define GENERAL_VALID (!job_left && job >= 0 && job <= 1 && n > 0 && is_kind(kind) && lda >= n && compute == kind && \
  kind_w == (real_of(kind) == R_32F ? C_32F : C_64F) && kind_left == kind && kind_right == kind && ld_left >= 1 && \
  ld_right >= n)

API int cusolverDnXgeev_bufferSize(GENERAL(const), size_t *bytes, size_t *host_bytes) {
  VALID(GENERAL_VALID && !a && !w && !left && !right && handle && *params == 1234);
  ASKED(112 * n);
}
API int cusolverDnXgeev(GENERAL(), WORK) {
  (void)left;
  ENTER("%lld", (long long)n);
  VALID(GENERAL_VALID);
  NEEDS(handle, params, work, bytes, 112 * n, host, host_bytes);
  number *values = loaded(a, kind, n, n, lda), *found = malloc(n * sizeof *found), *vectors = malloc(n * n * sizeof *vectors);
  int is_real = kind == R_32F || kind == R_64F;
  *info = !is_finite(values, n * n);
  general(values, n, found, vectors);
  for (int64_t at = 0; is_real && at < n; at++) {
    if (fabs(cimag(found[at])) < 1e-7 * cabs(found[at])) {    /* a real one, whose vector is turned to be real */
      number *x = vectors + at * n, turn = 1;
      double most = 0;
      found[at] = creal(found[at]);
      for (int64_t r = 0; r < n; r++) if (cabs(x[r]) > most) most = cabs(x[r]), turn = conj(x[r]) / most;
      for (int64_t r = 0; r < n; r++) x[r] *= turn;
      continue;
    }
    int64_t other = at + 1;
    for (int64_t to = at + 1; to < n; to++)
      if (cabs(found[to] - conj(found[at])) < cabs(found[other] - conj(found[at]))) other = to;
    if (cimag(found[at]) < 0) found[at] = conj(found[at]);
    found[other] = found[at + 1];
    for (int64_t r = 0; r < n; r++) vectors[other * n + r] = vectors[(at + 1) * n + r];
    found[at + 1] = conj(found[at]);
    number shift = found[at];                                 /* its vector once more, since it may be the other's */
    int64_t *pivots = malloc(n * sizeof *pivots);
    number *t = malloc(n * n * sizeof *t), *x = vectors + at * n;
    for (int64_t c = 0; c < n; c++)
      for (int64_t r = 0; r < n; r++) t[c * n + r] = values[c * n + r] - (r == c ? shift + 1e-9 : 0);
    lu(t, n, pivots);
    for (int64_t r = 0; r < n; r++) x[r] = 1 + 0.1 * (double)r;
    for (int turn = 0; turn < 4; turn++) {
      lu_solve(t, n, pivots, x);
      double length = sqrt(creal(dot(x, x, n)));
      for (int64_t r = 0; r < n; r++) x[r] /= length;
    }
    for (int64_t r = 0; r < n; r++) {
      vectors[(at + 1) * n + r] = cimag(x[r]);
      x[r] = creal(x[r]);
    }
    free(pivots), free(t);
    at++;
  }
  stored(a, kind, n, n, lda, values);
  stored(w, kind_w, n, 1, n, found);
  if (job) stored(right, kind, n, n, ld_right, vectors);
  else free(vectors);
  return SUCCESS;
}
