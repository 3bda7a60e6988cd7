// The C interface of the CPU kernel: pointers, sizes and strides; nothing of torch, Python or C++.
//
// statewise/native/library.py declares the same structures for ctypes; SW_VERSION changes whenever one of them does.
// Every function returns 0, or 1 if it did not run: the memory was exhausted, a number names nothing it knows, or no build
// in the library is for this processor.
#pragma once

#include <stdint.h>

#define SW_VERSION 1

#if defined(__GNUC__)
#define SW_PUBLIC __attribute__((visibility("default")))
#else
#define SW_PUBLIC
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The numbers of replica r begin at data + r * stride, counted in elements, and lie one after the other; a null pointer: none.
typedef struct {
    void* data;
    int64_t stride;
} sw_array;

// One layer in one direction, for all replicas. Rows are those of the layout: step after step, running sequences only.
typedef struct {
    int64_t dtype;  // 0: float32, 1: float64; of all arrays
    int64_t threads;
    int64_t cell, activation;
    int64_t replicas, rows, batch, hidden, input;
    int64_t steps;
    const int64_t* batch_sizes;  // of each step; null: `batch` at every step
    int64_t reverse, start_at_one, mask_constant, coefficients_constant, memory_changes;
    int64_t keep;  // whether the way back may come: without it, only states and final states are written

    // The state's transforms: for each 9 integers and 2 numbers, and arrays by index.
    int64_t transforms;
    const int64_t* integers;
    const double* numbers;
    int64_t array_count;
    const sw_array* arrays;

    // The input term is `given` or inputs weight_ih^T, plus the bias.
    sw_array inputs, given, weight_ih, bias;
    sw_array weight_hh, apart_bias, extra, initial_state, initial_memory, mask;
    sw_array second_given, coefficients;  // the other member of a mixed pair, and the weight of the first

    // Results. Of those that only the way back reads, forward needs memory of its own where they are not kept.
    sw_array states, state, memory;  // all states; the final state and memory, which begin as the initial ones
    sw_array term, memories, cell_memories, apart, gated, second;

    // The way back. Null: not wanted, or for grad_states zero. grad_state and grad_memory are of the final ones before and of
    // the initial ones after; the gradients of weights, biases and extra begin as 0.
    sw_array grad_states, grad_state, grad_memory;
    sw_array grad_inputs, grad_given, grad_second, grad_weight_ih, grad_weight_hh, grad_bias, grad_extra;
} sw_recurrence;

// A linear-chain conditional random field. Emissions are (steps, batch, tags), all arrays contiguous.
typedef struct {
    int64_t dtype, threads;
    int64_t steps, batch, tags;
    int64_t every;                  // whether every prefix has a result, or the whole alone
    const int64_t *lengths, *path;  // (batch), (steps, batch)
    const void *emissions, *transitions, *start, *end, *incoming, *weights, *pair_weights;
    double *row_weights, *row_sums;  // (batch, steps, tags rounded up to a multiple of 8): what the way back needs
    uint8_t* logged;                 // (batch): which sequences were walked in logarithms
    void* out;
    void *grad_emissions, *grad_transitions, *grad_start, *grad_end;
} sw_crf;

// The mean cross entropy of a linear readout. Gradients: null if not wanted; those of weights and biases begin as 0.
typedef struct {
    int64_t dtype, threads;
    int64_t replicas, rows, width, classes;
    sw_array states, weight, bias, targets;  // targets: int64
    void* losses;                            // (replicas)
    sw_array grad_states, grad_weight, grad_bias;
} sw_readout;

// Random numbers, (steps, size) in float32, as statewise/transforms/recipes.py defines them.
typedef struct {
    int64_t threads, steps, size, seed, kind, bound;
    double scale, shift, shapes[6];
    float* out;
} sw_fill;

// to = from B (+ bias), with B = weight^T, or weight itself; or, with `turned`, to = from^T weight.
typedef struct {
    int64_t dtype, threads;
    int64_t rows, inner, columns, transpose, turned;
    const void *from, *weight, *bias;
    void* to;
} sw_product;

// The rows of a term that pairs of sequences read, and what each row gets back from them.
typedef struct {
    int64_t dtype, threads;
    int64_t rows, pairs, width;
    const int64_t *first, *second;  // for each pair its row; -1: the blank; null: the rows as they lie
    const void *term, *blank;       // blank: null for 0
    void *to_first, *to_second;
    const void *grad_first, *grad_second;
    void *grad_term, *grad_blank;
} sw_deal;

SW_PUBLIC int64_t sw_version(void);
// The fingerprint of the sources that this was made of, as build.py has it.
SW_PUBLIC const char* sw_sources(void);
// The sizes of the structures above, in their order, for callers to compare with their own.
SW_PUBLIC void sw_sizes(int64_t* to);
// The instruction set in use, null if this processor has none of them, and one after the other those that it has, best
// first; null behind the last.
SW_PUBLIC const char* sw_instruction_set(void);
SW_PUBLIC const char* sw_instruction_set_at(int64_t index);
// Uses the named one from now on; 1 if this processor or this build lacks it.
SW_PUBLIC int64_t sw_use(const char* name);
// OpenMP's own functions, so that the kernel runs on the threads that the caller's other operators use: GOMP_parallel,
// omp_get_thread_num, omp_get_num_threads, omp_in_parallel. Without them it starts threads of its own.
SW_PUBLIC void sw_use_openmp(void* parallel, void* thread_num, void* num_threads, void* in_parallel);

// A block of at least `bytes` bytes that may have been used before, and its real size; sw_give takes it back.
SW_PUBLIC void* sw_take(int64_t* bytes);
SW_PUBLIC void sw_give(void* memory, int64_t bytes);
// Asks the system for huge pages, where it gives them to those who ask.
SW_PUBLIC void sw_huge_pages(void* memory, int64_t bytes);

SW_PUBLIC int64_t sw_recurrence_forward(const sw_recurrence* call);
SW_PUBLIC int64_t sw_recurrence_backward(const sw_recurrence* call);
SW_PUBLIC int64_t sw_crf_forward(const sw_crf* call);
SW_PUBLIC int64_t sw_crf_backward(const sw_crf* call);
SW_PUBLIC int64_t sw_crf_score(const sw_crf* call);
SW_PUBLIC int64_t sw_crf_score_backward(const sw_crf* call);
SW_PUBLIC int64_t sw_readout_loss(const sw_readout* call);
SW_PUBLIC int64_t sw_fill_counted(const sw_fill* call);
SW_PUBLIC int64_t sw_multiply(const sw_product* call);
SW_PUBLIC int64_t sw_deal_rows(const sw_deal* call);
SW_PUBLIC int64_t sw_collect_rows(const sw_deal* call);

#ifdef __cplusplus
}
#endif
