// What each build of the kernel offers; dispatch.cpp chooses one of them when the library is loaded.
#pragma once

#include "interface.h"

struct sw_functions {
    int64_t (*recurrence_forward)(const sw_recurrence&);
    int64_t (*recurrence_backward)(const sw_recurrence&);
    int64_t (*crf_forward)(const sw_crf&);
    int64_t (*crf_backward)(const sw_crf&);
    int64_t (*crf_score)(const sw_crf&);
    int64_t (*crf_score_backward)(const sw_crf&);
    int64_t (*readout_loss)(const sw_readout&);
    int64_t (*fill_counted)(const sw_fill&);
    int64_t (*multiply)(const sw_product&);
    int64_t (*deal_rows)(const sw_deal&);
    int64_t (*collect_rows)(const sw_deal&);
};

// How threads are started: by OpenMP where the caller has one.
struct sw_openmp {
    void (*parallel)(void (*)(void*), void*, unsigned, unsigned) = nullptr;
    int (*thread_num)() = nullptr;
    int (*num_threads)() = nullptr;
    int (*in_parallel)() = nullptr;
};
extern sw_openmp sw_openmp_functions;

// Throws std::bad_alloc, for builds that must not have code of the standard library of their own (platform.h).
[[noreturn]] void sw_out_of_memory();
