/* Linear algebra for the stand-ins, by its definitions: matrices are arrays of columns of complex numbers. */

#include <complex.h>
#include <math.h>

#pragma GCC diagnostic ignored "-Wunused-function" /* each stand-in has some of these */

typedef double complex number;
enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };

static number get(const void *array, int kind, int64_t at) {
  switch (kind) {
    case R_32F: return ((const float *)array)[at];
    case R_64F: return ((const double *)array)[at];
    case C_32F: return ((const float complex *)array)[at];
    default: return ((const number *)array)[at];
  }
}

static void put(void *array, int kind, int64_t at, number value) {
  switch (kind) {
    case R_32F: ((float *)array)[at] = (float)creal(value); break;
    case R_64F: ((double *)array)[at] = creal(value); break;
    case C_32F: ((float complex *)array)[at] = (float complex)value; break;
    default: ((number *)array)[at] = value;
  }
}

static int bytes_of_kind(int kind) { return kind == R_32F ? 4 : kind == C_64F ? 16 : 8; }

static number *loaded(const void *array, int kind, int64_t rows, int64_t columns, int64_t leading) {
  number *made = malloc((rows * columns + 1) * sizeof *made);
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < rows; r++) made[c * rows + r] = get(array, kind, c * leading + r);
  return made;
}

static void stored(void *array, int kind, int64_t rows, int64_t columns, int64_t leading, number *values) {
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < rows; r++) put(array, kind, c * leading + r, values[c * rows + r]);
  free(values);
}

/* 0, or the place of the first pivot that is 0, from 1; pivots from 0 */
static int lu(number *a, int64_t n, int64_t *pivots) {
  int info = 0;
  for (int64_t k = 0; k < n; k++) {
    int64_t best = k;
    for (int64_t r = k + 1; r < n; r++) if (cabs(a[k * n + r]) > cabs(a[k * n + best])) best = r;
    pivots[k] = best;
    for (int64_t c = 0; c < n; c++) {
      number kept = a[c * n + k];
      a[c * n + k] = a[c * n + best], a[c * n + best] = kept;
    }
    if (a[k * n + k] == 0) { info = info ? info : (int)k + 1; continue; }
    for (int64_t r = k + 1; r < n; r++) {
      number factor = a[k * n + r] /= a[k * n + k];
      for (int64_t c = k + 1; c < n; c++) a[c * n + r] -= factor * a[c * n + k];
    }
  }
  return info;
}

static void lu_solve(const number *a, int64_t n, const int64_t *pivots, number *x) {
  for (int64_t k = 0; k < n; k++) {
    number kept = x[k];
    x[k] = x[pivots[k]], x[pivots[k]] = kept;
  }
  for (int64_t k = 0; k < n; k++) for (int64_t r = k + 1; r < n; r++) x[r] -= a[k * n + r] * x[k];
  for (int64_t k = n - 1; k >= 0; k--) {
    x[k] /= a[k * n + k];
    for (int64_t r = 0; r < k; r++) x[r] -= a[k * n + r] * x[k];
  }
}

/* The lower factor of the lower triangle, or the upper one of the upper; the other triangle is spoilt. */
static int cholesky(number *a, int64_t n, int is_upper) {
  for (int64_t c = 0; c < n; c++) for (int64_t r = 0; r < n; r++) if (is_upper ? r > c : r < c) a[c * n + r] = NAN;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = j; i < n; i++) {
      int64_t place = is_upper ? i * n + j : j * n + i;
      number total = a[place];
      for (int64_t k = 0; k < j; k++)
        total -= is_upper ? conj(a[j * n + k]) * a[i * n + k] : a[k * n + i] * conj(a[k * n + j]);
      if (i == j && !(creal(total) > 0)) return (int)j + 1;
      a[place] = i == j ? csqrt(creal(total)) : total / a[j * n + j];
    }
  return 0;
}

static void householder(number *a, int64_t m, int64_t n, number *tau) {
  for (int64_t k = 0; k < m && k < n; k++) {
    number alpha = a[k * m + k];
    double length = 0;
    for (int64_t r = k; r < m; r++) length += pow(cabs(a[k * m + r]), 2);
    double below = length - pow(cabs(alpha), 2);
    tau[k] = 0;
    if ((below <= 0 || k == m - 1) && cimag(alpha) == 0) continue;
    double beta = -copysign(sqrt(length), creal(alpha));
    tau[k] = (beta - alpha) / beta;
    for (int64_t r = k + 1; r < m; r++) a[k * m + r] /= alpha - beta;
    a[k * m + k] = beta;
    for (int64_t c = k + 1; c < n; c++) {
      number total = a[c * m + k];
      for (int64_t r = k + 1; r < m; r++) total += conj(a[k * m + r]) * a[c * m + r];
      total *= conj(tau[k]);
      a[c * m + k] -= total;
      for (int64_t r = k + 1; r < m; r++) a[c * m + r] -= total * a[k * m + r];
    }
  }
}

/* The first n columns of the product of k reflections */
static void orthogonal(number *a, int64_t m, int64_t n, int64_t k, const number *tau) {
  number *q = calloc(m * n + 1, sizeof *q);
  for (int64_t c = 0; c < n; c++) q[c * m + c] = 1;
  for (int64_t j = k - 1; j >= 0; j--)
    for (int64_t c = 0; c < n; c++) {
      number total = q[c * m + j];
      for (int64_t r = j + 1; r < m; r++) total += conj(a[j * m + r]) * q[c * m + r];
      total *= tau[j];
      q[c * m + j] -= total;
      for (int64_t r = j + 1; r < m; r++) q[c * m + r] -= total * a[j * m + r];
    }
  memcpy(a, q, m * n * sizeof *q);
  free(q);
}

static number dot(const number *x, const number *y, int64_t n) {
  number total = 0;
  for (int64_t at = 0; at < n; at++) total += conj(x[at]) * y[at];
  return total;
}

/* Columns made orthogonal to those before, also those that have no length */
static void completed(number *u, int64_t m, int64_t have, int64_t want) {
  for (int64_t c = have; c < want; c++)
    for (int64_t unit = 0; unit < m; unit++) {
      for (int64_t r = 0; r < m; r++) u[c * m + r] = r == unit;
      for (int turn = 0; turn < 2; turn++)
        for (int64_t b = 0; b < c; b++) {
          number part = dot(u + b * m, u + c * m, m);
          for (int64_t r = 0; r < m; r++) u[c * m + r] -= part * u[b * m + r];
        }
      double length = sqrt(creal(dot(u + c * m, u + c * m, m)));
      if (length < 0.1 / sqrt((double)m)) continue;
      for (int64_t r = 0; r < m; r++) u[c * m + r] /= length;
      break;
    }
}

/* a of m >= n becomes n columns of u, the others follow in u[m * m]; v has vectors in columns */
static void singular(const number *a, int64_t m, int64_t n, number *u, double *s, number *v) {
  number *b = malloc((m * n + 1) * sizeof *b), *w = calloc(n * n + 1, sizeof *w);
  memcpy(b, a, m * n * sizeof *b);
  for (int64_t c = 0; c < n; c++) w[c * n + c] = 1;
  for (int turn = 0, moved = 1; moved && turn < 60; turn++) {
    moved = 0;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        number *x = b + p * m, *y = b + q * m, gamma = dot(x, y, m);
        double alpha = creal(dot(x, x, m)), beta = creal(dot(y, y, m)), size = cabs(gamma);
        if (size <= 1e-15 * sqrt(alpha * beta) || size < 1e-300) continue;
        moved = 1;
        double zeta = (beta - alpha) / (2 * size), t = copysign(1 / (fabs(zeta) + sqrt(1 + zeta * zeta)), zeta);
        double c = 1 / sqrt(1 + t * t), d = c * t;
        number phase = conj(gamma / size);
        for (int64_t r = 0; r < m; r++) {
          number one = x[r], other = y[r] * phase;
          x[r] = c * one - d * other, y[r] = d * one + c * other;
        }
        for (int64_t r = 0; r < n; r++) {
          number one = w[p * n + r], other = w[q * n + r] * phase;
          w[p * n + r] = c * one - d * other, w[q * n + r] = d * one + c * other;
        }
      }
  }
  int64_t have = 0;
  double most = 0;
  char *is_done = calloc(n + 1, 1);
  for (int64_t at = 0; at < n; at++) {
    int64_t best = -1;
    double length = -1;
    for (int64_t c = 0; c < n; c++) {
      double own = sqrt(creal(dot(b + c * m, b + c * m, m)));
      if (!is_done[c] && (best < 0 || own > length)) length = own, best = c;
    }
    is_done[best] = 1;
    most = fmax(most, length);
    s[at] = length;
    for (int64_t r = 0; r < m; r++) u[at * m + r] = length > 0 ? b[best * m + r] / length : 0;
    for (int64_t r = 0; r < n; r++) v[at * n + r] = w[best * n + r];
    if (length > 1e-13 * most && have == at) have = at + 1;
  }
  completed(u, m, have, m);
  free(b), free(w), free(is_done);
}

/* Eigenvalues in ascending order, and vectors in the place of a Hermitian matrix, of which one triangle is read */
static void hermitian(number *a, int64_t n, int is_upper, double *w) {
  number *u = malloc((n * n + 1) * sizeof *u), *v = malloc((n * n + 1) * sizeof *v);
  double shift = 0;
  for (int64_t c = 0; c < n; c++)
    for (int64_t r = 0; r < c; r++)
      if (is_upper) a[r * n + c] = conj(a[c * n + r]);
      else a[c * n + r] = conj(a[r * n + c]);
  for (int64_t at = 0; at < n * n; at++) shift += cabs(a[at]);
  for (int64_t c = 0; c < n; c++) a[c * n + c] = creal(a[c * n + c]) + shift;
  singular(a, n, n, u, w, v);
  for (int64_t c = 0; c < n; c++) memcpy(a + c * n, u + (n - 1 - c) * n, n * sizeof *u);
  for (int64_t c = 0; c < n / 2; c++) {
    double kept = w[c];
    w[c] = w[n - 1 - c], w[n - 1 - c] = kept;
  }
  for (int64_t c = 0; c < n; c++) w[c] -= shift;
  free(u), free(v);
}

/* Eigenvalues of few rows, as roots of the characteristic polynomial, and vectors in v by inverse iteration */
static void general(const number *a, int64_t n, number *w, number *v) {
  number *p = calloc(n + 1, sizeof *p), *m = calloc(n * n + 1, sizeof *m), *t = calloc(n * n + 1, sizeof *t);
  int64_t *pivots = malloc((n + 1) * sizeof *pivots);
  p[n] = 1;
  for (int64_t k = 1; k <= n; k++) {                         /* Faddeev and LeVerrier */
    for (int64_t c = 0; c < n; c++)
      for (int64_t r = 0; r < n; r++) {
        t[c * n + r] = r == c ? p[n - k + 1] : 0;
        for (int64_t i = 0; i < n; i++) t[c * n + r] += a[i * n + r] * m[c * n + i];
      }
    memcpy(m, t, n * n * sizeof *m);
    for (int64_t c = 0; c < n; c++)
      for (int64_t i = 0; i < n; i++) p[n - k] -= a[i * n + c] * m[c * n + i] / (double)k;
  }
  for (int64_t at = 0; at < n; at++) w[at] = cpow(0.4 + 0.9 * I, (double)at);
  for (int turn = 0; turn < 3000; turn++)                    /* Durand and Kerner */
    for (int64_t at = 0; at < n; at++) {
      number value = 1, others = 1;
      for (int64_t k = n - 1; k >= 0; k--) value = value * w[at] + p[k];
      for (int64_t other = 0; other < n; other++) if (other != at) others *= w[at] - w[other];
      w[at] -= value / others;
    }
  for (int64_t at = 0; at < n; at++) {
    number *x = v + at * n;
    for (int64_t c = 0; c < n; c++)
      for (int64_t r = 0; r < n; r++) t[c * n + r] = a[c * n + r] - (r == c ? w[at] + 1e-9 : 0);
    lu(t, n, pivots);
    for (int64_t r = 0; r < n; r++) x[r] = 1 + 0.1 * (double)r;
    for (int turn = 0; turn < 4; turn++) {
      lu_solve(t, n, pivots, x);
      double length = sqrt(creal(dot(x, x, n)));
      for (int64_t r = 0; r < n; r++) x[r] /= length;
    }
  }
  free(p), free(m), free(t), free(pivots);
}
