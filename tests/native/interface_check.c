/* A numeric test of the C interface in plain C, for processors that only an emulator has here. Exit code 0: all is well.
 *
 * An LSTM of one layer is walked by the kernel and by the formula, for float and double, and its gradients are compared with
 * central differences of the formula. Then each allocation fails in turn: the call must say so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interface.h"

enum { STEPS = 5, BATCH = 3, HIDDEN = 35, INPUT = 34, WIDTH = 4 * HIDDEN, ROWS = STEPS * BATCH };

static double inputs[ROWS * INPUT], weight_ih[WIDTH * INPUT], weight_hh[WIDTH * HIDDEN], bias[WIDTH];
static double initial[BATCH * HIDDEN];

static long until_failure = -1; /* how many allocations of the kernel succeed before one fails; below 0: none fails */

/* What the library's C++ allocates by: this one takes the place of the C library's. */
void* aligned_alloc(size_t alignment, size_t size) {
    void* memory = NULL;
    if (until_failure >= 0 && __atomic_fetch_sub(&until_failure, 1, __ATOMIC_SEQ_CST) == 0) return NULL;
    return posix_memalign(&memory, alignment, size) ? NULL : memory;
}

static double drawn(void) {
    static unsigned long long seed = 1;
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(seed >> 11) / 9007199254740992.0 - 0.5;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* The sum of all states by the formula. */
static double plain(double* states) {
    double h[BATCH][HIDDEN], c[BATCH][HIDDEN], z[WIDTH], total = 0;
    memcpy(h, initial, sizeof h);
    memcpy(c, initial, sizeof c);
    for (int t = 0; t < STEPS; ++t) {
        for (int b = 0; b < BATCH; ++b) {
            for (int i = 0; i < WIDTH; ++i) {
                z[i] = bias[i];
                for (int j = 0; j < INPUT; ++j) z[i] += weight_ih[i * INPUT + j] * inputs[(t * BATCH + b) * INPUT + j];
                for (int j = 0; j < HIDDEN; ++j) z[i] += weight_hh[i * HIDDEN + j] * h[b][j];
            }
            for (int i = 0; i < HIDDEN; ++i) {
                c[b][i] = sigmoid(z[HIDDEN + i]) * c[b][i] + sigmoid(z[i]) * tanh(z[2 * HIDDEN + i]);
                h[b][i] = sigmoid(z[3 * HIDDEN + i]) * tanh(c[b][i]);
                states[(t * BATCH + b) * HIDDEN + i] = h[b][i];
                total += h[b][i];
            }
        }
    }
    return total;
}

static void* copied(const double* from, int count, int single) {
    void* to = malloc((size_t)count * sizeof(double));
    for (int i = 0; i < count; ++i) {
        if (single) ((float*)to)[i] = (float)from[i];
        else ((double*)to)[i] = from[i];
    }
    return to;
}

static double at(const void* values, int i, int single) { return single ? ((const float*)values)[i] : ((const double*)values)[i]; }

static int failed(const char* what, double got, double wanted, double tolerance) {
    if (fabs(got - wanted) <= tolerance * (1 + fabs(wanted))) return 0;
    printf("%s: got %.12g, wanted %.12g\n", what, got, wanted);
    return 1;
}

enum { REFUSED = -1 };

/* How many numbers were wrong. */
static int check(int single, int threads, int keep) {
    static double zeros[WIDTH * HIDDEN], states[ROWS * HIDDEN];
    const double tolerance = single ? 2e-5 : 1e-12;
    sw_recurrence call;
    memset(&call, 0, sizeof call);
    call.dtype = !single;
    call.threads = threads;
    call.cell = 1;
    call.replicas = 1;
    call.rows = ROWS, call.batch = BATCH, call.hidden = HIDDEN, call.input = INPUT, call.steps = STEPS;
    call.keep = keep;
    call.inputs.data = copied(inputs, ROWS * INPUT, single);
    call.weight_ih.data = copied(weight_ih, WIDTH * INPUT, single);
    call.weight_hh.data = copied(weight_hh, WIDTH * HIDDEN, single);
    call.bias.data = copied(bias, WIDTH, single);
    call.initial_state.data = copied(initial, BATCH * HIDDEN, single);
    call.initial_memory.data = copied(initial, BATCH * HIDDEN, single);
    call.state.data = copied(initial, BATCH * HIDDEN, single);
    call.memory.data = copied(initial, BATCH * HIDDEN, single);
    call.states.data = copied(zeros, ROWS * HIDDEN, single);
    call.memories.data = copied(zeros, ROWS * HIDDEN, single);
    call.term.data = malloc(sizeof(double) * ROWS * WIDTH);
    if (sw_recurrence_forward(&call)) return REFUSED;
    int wrong = 0;
    plain(states);
    for (int i = 0; i < ROWS * HIDDEN; ++i) wrong += failed("state", at(call.states.data, i, single), states[i], tolerance);
    if (!keep) return wrong;
    static double ones[ROWS * HIDDEN];
    for (int i = 0; i < ROWS * HIDDEN; ++i) ones[i] = 1;
    call.grad_states.data = copied(ones, ROWS * HIDDEN, single);
    call.grad_state.data = copied(zeros, BATCH * HIDDEN, single);
    call.grad_memory.data = copied(zeros, BATCH * HIDDEN, single);
    call.grad_inputs.data = copied(zeros, ROWS * INPUT, single);
    call.grad_weight_ih.data = copied(zeros, WIDTH * INPUT, single);
    call.grad_weight_hh.data = copied(zeros, WIDTH * HIDDEN, single);
    call.grad_bias.data = copied(zeros, WIDTH, single);
    if (sw_recurrence_backward(&call)) return REFUSED;
    struct { const char* name; double* value; int count; void* grad; } each[] = {
        {"grad_inputs", inputs, ROWS * INPUT, call.grad_inputs.data},
        {"grad_weight_ih", weight_ih, WIDTH * INPUT, call.grad_weight_ih.data},
        {"grad_weight_hh", weight_hh, WIDTH * HIDDEN, call.grad_weight_hh.data},
        {"grad_bias", bias, WIDTH, call.grad_bias.data},
    };
    for (int k = 0; k < 4; ++k) {
        for (int i = 0; i < each[k].count; i += 1 + each[k].count / 40) {
            const double kept = each[k].value[i], step = 1e-5;
            each[k].value[i] = kept + step;
            const double above = plain(states);
            each[k].value[i] = kept - step;
            const double below = plain(states);
            each[k].value[i] = kept;
            wrong += failed(each[k].name, at(each[k].grad, i, single), (above - below) / (2 * step), single ? 2e-4 : 1e-7);
        }
    }
    return wrong;
}

/* Whether an allocation failed without a word, or none did. */
static int check_failures(int threads) {
    for (long n = 0;; ++n) {
        until_failure = n;
        const int found = check(0, threads, 1), all_succeeded = until_failure >= 0;
        until_failure = -1;
        if (all_succeeded) return n < 5 || found != 0;
        if (found != REFUSED) return printf("allocation %ld of %d threads failed without a word\n", n, threads), 1;
    }
}

/* On a processor for which the library has no build, nothing runs and nothing crashes. */
static int check_none(void) {
    float to[4] = {7, 7, 7, 7};
    sw_fill fill = {1, 1, 4, 12345, 1, 0, 2.0, 1.0, {0}, to};
    sw_recurrence call;
    memset(&call, 0, sizeof call);
    printf("none\n");
    return sw_instruction_set() || sw_fill_counted(&fill) != 1 || to[0] != 7 || sw_recurrence_forward(&call) != 1;
}

int main(void) {
    if (!sw_instruction_set_at(0)) return check_none();
    for (int i = 0; i < ROWS * INPUT; ++i) inputs[i] = drawn();
    for (int i = 0; i < WIDTH * INPUT; ++i) weight_ih[i] = drawn();
    for (int i = 0; i < WIDTH * HIDDEN; ++i) weight_hh[i] = drawn();
    for (int i = 0; i < WIDTH; ++i) bias[i] = drawn();
    for (int i = 0; i < BATCH * HIDDEN; ++i) initial[i] = drawn();
    int wrong = sw_version() != SW_VERSION;
    for (int64_t i = 0; sw_instruction_set_at(i); ++i) {
        wrong += (int)sw_use(sw_instruction_set_at(i));
        for (int single = 0; single < 2; ++single) {
            for (int threads = 1; threads < 3; ++threads) wrong += (check(single, threads, 1) || check(single, threads, 0));
        }
        wrong += check_failures(1) + check_failures(2);
        printf("%s: %d wrong\n", sw_instruction_set(), wrong);
    }
    float first[64], second[64];
    sw_fill fill = {1, 4, 16, 12345, 1, 0, 2.0, 1.0, {0}, first};
    wrong += (int)sw_fill_counted(&fill);
    fill.threads = 2, fill.out = second;
    wrong += (int)sw_fill_counted(&fill);
    wrong += memcmp(first, second, sizeof first) != 0;
    for (int i = 0; i < 4; ++i) printf("%.9g ", first[i]);
    printf("\n");
    return wrong != 0;
}
