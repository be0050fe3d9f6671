/* A stand-in for cuFFT where libcuda is one too: transforms in host memory by their definition, checked as cuFFT checks
 * them, and as strict as it may be: it spoils what it reads as half of a Hermitian array. */

#define STUB_LOG stub_cufft_log
#define STUB_LOG_CLEAR stub_cufft_log_clear
#include "stub_log.h"

#include <complex.h>
#include <math.h>

enum { SUCCESS = 0, INVALID_PLAN = 1, INVALID_TYPE = 3, INVALID_VALUE = 4, EXEC_FAILED = 6, INVALID_SIZE = 8,
       UNALIGNED_DATA = 9, INVALID_DEVICE = 11, NO_WORKSPACE = 13 };
enum { R2C = 0x2a, C2R = 0x2c, C2C = 0x29, D2Z = 0x6a, Z2D = 0x6c, Z2Z = 0x69, MOST = 4096 };

struct layout { long long embed[3], step, distance; };
static struct plan {
  int is_used, device, rank, type, is_manual, is_made;
  long long n[3], batch;
  struct layout in, out;
  void *stream, *workspace;
} plans[MOST];

static struct plan *plan_of(int handle) { return handle > 0 && handle < MOST && plans[handle].is_used ? plans + handle : NULL; }

API int cufftCreate(int *made) {
  ENTER("%d", current());
  pthread_mutex_lock(&lock);
  int handle = 1;
  while (handle < MOST && plans[handle].is_used) handle++;
  if (handle < MOST) {
    memset(plans + handle, 0, sizeof *plans);
    plans[handle].is_used = 1;
    plans[handle].device = current();
  }
  pthread_mutex_unlock(&lock);
  *made = handle;
  return handle < MOST ? SUCCESS : EXEC_FAILED;
}
API int cufftDestroy(int handle) {
  struct plan *plan = plan_of(handle);
  ENTER("%d", handle);
  if (!plan) return INVALID_PLAN;
  plan->is_used = 0;
  return SUCCESS;
}
API int cufftSetAutoAllocation(int handle, int automatic) {
  struct plan *plan = plan_of(handle);
  ENTER("%d", automatic);
  if (!plan) return INVALID_PLAN;
  plan->is_manual = !automatic;
  return SUCCESS;
}
API int cufftSetStream(int handle, void *stream) {
  struct plan *plan = plan_of(handle);
  ENTER("%p", stream);
  if (!plan) return INVALID_PLAN;
  plan->stream = stream;
  return SUCCESS;
}
API int cufftSetWorkArea(int handle, void *workspace) {
  struct plan *plan = plan_of(handle);
  ENTER("%p", workspace);
  if (!plan) return INVALID_PLAN;
  if ((uintptr_t)workspace % 256) return UNALIGNED_DATA;
  plan->workspace = workspace;
  return SUCCESS;
}

API int cufftMakePlanMany64(int handle, int rank, long long *n, long long *inembed, long long istride, long long idist,
                            long long *onembed, long long ostride, long long odist, int type, long long batch,
                            size_t *bytes) {
  struct plan *plan = plan_of(handle);
  ENTER("rank %d, %lld times", rank, batch);
  if (!plan || plan->is_made || !plan->is_manual) return INVALID_PLAN;
  if (rank < 1 || rank > 3 || batch < 1) return INVALID_VALUE;
  if (!inembed || !onembed || istride < 1 || ostride < 1 || (batch > 1 && (idist < 1 || odist < 1))) return INVALID_VALUE;
  if (type != R2C && type != C2R && type != C2C && type != D2Z && type != Z2D && type != Z2Z) return INVALID_TYPE;
  for (int axis = 0; axis < rank; axis++) {
    long long half = n[axis] / 2 + 1, last = axis == rank - 1;
    if (n[axis] < 2) return INVALID_SIZE;
    if (inembed[axis] < (last && (type == C2R || type == Z2D) ? half : n[axis])) return INVALID_SIZE;
    if (onembed[axis] < (last && (type == R2C || type == D2Z) ? half : n[axis])) return INVALID_SIZE;
    plan->n[axis] = n[axis];
    plan->in.embed[axis] = inembed[axis];
    plan->out.embed[axis] = onembed[axis];
  }
  plan->rank = rank, plan->type = type, plan->batch = batch, plan->is_made = 1;
  plan->in.step = istride, plan->in.distance = idist, plan->out.step = ostride, plan->out.distance = odist;
  *bytes = rank == 1 && n[0] < 8 ? 0 : 64;
  return SUCCESS;
}

static long long place(const struct layout *layout, int rank, const long long *at) {
  long long found = at[0];
  for (int axis = 1; axis < rank; axis++) found = found * layout->embed[axis] + at[axis];
  return found * layout->step;
}

static double complex load(const void *array, int is_wide, int is_real, long long at) {
  if (is_wide) return is_real ? ((const double *)array)[at] : ((const double complex *)array)[at];
  return is_real ? ((const float *)array)[at] : ((const float complex *)array)[at];
}

static void store(void *array, int is_wide, int is_real, long long at, double complex value) {
  if (is_wide && is_real) ((double *)array)[at] = creal(value);
  else if (is_wide) ((double complex *)array)[at] = value;
  else if (is_real) ((float *)array)[at] = (float)creal(value);
  else ((float complex *)array)[at] = (float complex)value;
}

static void along(double complex *values, long long count, long long step, int sign) {
  double complex *made = malloc(count * sizeof *made);
  for (long long to = 0; to < count; to++) {
    made[to] = 0;
    for (long long from = 0; from < count; from++)
      made[to] += values[from * step] * cexp(sign * 2 * M_PI * I * (double)(from * to % count) / (double)count);
  }
  for (long long to = 0; to < count; to++) values[to * step] = made[to];
  free(made);
}

static int run(int handle, void *source, void *target, int type, int sign) {
  struct plan *plan = plan_of(handle);
  if (!plan || !plan->is_made || plan->type != type) return INVALID_PLAN;
  if (!plan->stream) return EXEC_FAILED;
  if (current() >= 0 && current() != plan->device) return INVALID_DEVICE;
  if (!plan->workspace && !(plan->rank == 1 && plan->n[0] < 8)) return NO_WORKSPACE;
  int is_wide = type >= Z2Z, from_real = type == R2C || type == D2Z, to_real = type == C2R || type == Z2D, rank = plan->rank;
  if ((uintptr_t)source % (is_wide ? 16 : 8) || (uintptr_t)target % (is_wide ? 16 : 8)) return UNALIGNED_DATA;
  long long total = 1, *n = plan->n, last = n[rank - 1], half = last / 2 + 1;
  for (int axis = 0; axis < rank; axis++) total *= n[axis];
  double complex *values = malloc(total * sizeof *values);
  for (long long each = 0; each < plan->batch; each++) {
    for (int turn = 0; turn < 2; turn++) {                   /* read all, transform, and write */
      for (long long number = 0; number < total; number++) {
        long long at[3], rest = number, mirror[3], other = 0;
        for (int axis = rank - 1; axis >= 0; axis--) at[axis] = rest % n[axis], rest /= n[axis];
        for (int axis = 0; axis < rank; axis++) {
          mirror[axis] = at[axis] ? n[axis] - at[axis] : 0;
          other = other * n[axis] + mirror[axis];
        }
        if (!turn && to_real && at[rank - 1] >= half) continue;
        if (!turn) {
          long long where = each * plan->in.distance + place(&plan->in, rank, at);
          values[number] = load(source, is_wide, from_real, where);
          if (to_real && rank == 1 && other == number && cimag(values[number]) != 0) values[number] = NAN;
          if (to_real) store(source, is_wide, 0, where, NAN);
          if (to_real && mirror[rank - 1] >= half) values[other] = conj(values[number]);
        } else if (!from_real || at[rank - 1] < half)
          store(target, is_wide, to_real, each * plan->out.distance + place(&plan->out, rank, at), values[number]);
      }
      if (turn) break;
      long long step = 1;
      for (int axis = rank - 1; axis >= 0; step *= n[axis--])
        for (long long start = 0; start < total; start++)
          if (start / step % n[axis] == 0) along(values + start, n[axis], step, sign);
    }
  }
  free(values);
  return SUCCESS;
}

API int cufftExecC2C(int plan, void *in, void *out, int sign) { ENTER("%d", sign); return run(plan, in, out, C2C, sign); }
API int cufftExecZ2Z(int plan, void *in, void *out, int sign) { ENTER("%d", sign); return run(plan, in, out, Z2Z, sign); }
API int cufftExecR2C(int plan, void *in, void *out) { ENTER("of %d", plan); return run(plan, in, out, R2C, -1); }
API int cufftExecD2Z(int plan, void *in, void *out) { ENTER("of %d", plan); return run(plan, in, out, D2Z, -1); }
API int cufftExecC2R(int plan, void *in, void *out) { ENTER("of %d", plan); return run(plan, in, out, C2R, 1); }
API int cufftExecZ2D(int plan, void *in, void *out) { ENTER("of %d", plan); return run(plan, in, out, Z2D, 1); }
