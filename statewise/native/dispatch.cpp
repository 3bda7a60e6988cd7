// The library's own functions: which instruction set serves, and memory that is kept. Compiled for every processor.
#include <pthread.h>

#include <cstring>
#include <deque>
#include <mutex>
#include <new>

#include "functions.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

sw_openmp sw_openmp_functions;

void sw_out_of_memory() { throw std::bad_alloc(); }

// SW_BUILDS lists the builds that are linked in, best first: SW_BUILD(avx512) SW_BUILD(avx2) ...
#define SW_BUILD(name)                        \
    namespace statewise_##name {              \
    extern const sw_functions kFunctions;     \
    }
SW_BUILDS
#undef SW_BUILD

namespace {

struct Build {
    const char* name;
    const sw_functions* functions;
};

const Build kBuilds[] = {
#define SW_BUILD(name) {#name, &statewise_##name::kFunctions},
    SW_BUILDS
#undef SW_BUILD
};

bool runs_here(const char* name) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (!std::strcmp(name, "avx2")) return avx2;
    if (!std::strcmp(name, "avx512")) {
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    }
#endif
    (void)name;
    return true;
}

const Build* build_at(int64_t index) {
    for (const Build& build : kBuilds) {
        if (runs_here(build.name) && index-- == 0) return &build;
    }
    return nullptr;
}

// Chosen before the first call, by whoever comes first; every answer is the same.
const Build*& chosen() {
    static const Build* build = build_at(0);
    return build;
}

// Calls the chosen build's function. 1 where no build runs on this processor, or has no such dtype; exceptions must not pass
// through C.
template <class Call>
int64_t call_chosen(int64_t (*sw_functions::*function)(const Call&), const Call* call) {
    const Build* build = chosen();
    if (!build) return 1;
    if constexpr (requires { call->dtype; }) {
        if (call->dtype != 0 && call->dtype != 1) return 1;
    }
    try {
        return (build->functions->*function)(*call);
    } catch (...) {
        return 1;
    }
}

// Big blocks that outlive a step. A training step takes and gives back the same buffers again and again; the C library hands
// big ones back to the system, which then clears every page anew. Here a few are kept for the next step, within a bound.
class Kept {
public:
    static constexpr size_t kMost = size_t(1) << 26;

    void* take(size_t& bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        auto best = blocks_.end();
        for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
            const bool fits = block->bytes >= bytes && block->bytes <= bytes + bytes / 2;
            if (fits && (best == blocks_.end() || block->bytes < best->bytes)) best = block;
        }
        if (best == blocks_.end()) return ::operator new(bytes, std::align_val_t(64), std::nothrow);
        void* memory = best->memory;
        bytes = best->bytes;
        held_ -= bytes;
        blocks_.erase(best);
        return memory;
    }

    // Back for the next; the oldest make room.
    void give(void* memory, size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        try {
            blocks_.push_back({memory, bytes});
        } catch (const std::bad_alloc&) {
            ::operator delete(memory, std::align_val_t(64));
            return;
        }
        held_ += bytes;
        while (held_ > kMost) {
            held_ -= blocks_.front().bytes;
            ::operator delete(blocks_.front().memory, std::align_val_t(64));
            blocks_.pop_front();
        }
    }

    // Around a fork, after which no other thread could unlock it in the child.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    struct Block {
        void* memory;
        size_t bytes;
    };
    std::mutex mutex_;
    std::deque<Block> blocks_;
    size_t held_ = 0;
};

Kept& kept();

// Before a fork its lock is taken, since no other thread could give it back in the child. GNU's OpenMP waits forever for its
// threads there, of which the child has none, so there the kernel starts its own.
Kept* new_kept() {
    pthread_atfork([] { kept().lock(); }, [] { kept().unlock(); },
                   [] {
                       kept().unlock();
                       sw_openmp_functions = {};
                   });
    return new Kept;
}

// One for the whole process; never destroyed, since blocks may be given back while it ends.
Kept& kept() {
    static Kept* all = new_kept();
    return *all;
}

}  // namespace

int64_t sw_version(void) { return SW_VERSION; }

const char* sw_sources(void) { return SW_SOURCES; }

void sw_sizes(int64_t* to) {
    const size_t sizes[] = {sizeof(sw_recurrence), sizeof(sw_crf),  sizeof(sw_readout),
                            sizeof(sw_fill),       sizeof(sw_product), sizeof(sw_deal)};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) to[i] = int64_t(sizes[i]);
}

const char* sw_instruction_set(void) { return chosen() ? chosen()->name : nullptr; }

const char* sw_instruction_set_at(int64_t index) {
    const Build* build = build_at(index);
    return build ? build->name : nullptr;
}

int64_t sw_use(const char* name) {
    for (const Build& build : kBuilds) {
        if (std::strcmp(build.name, name) || !runs_here(name)) continue;
        chosen() = &build;
        return 0;
    }
    return 1;
}

void sw_use_openmp(void* parallel, void* thread_num, void* num_threads, void* in_parallel) {
    sw_openmp found;
    std::memcpy(&found.parallel, &parallel, sizeof(parallel));
    std::memcpy(&found.thread_num, &thread_num, sizeof(thread_num));
    std::memcpy(&found.num_threads, &num_threads, sizeof(num_threads));
    std::memcpy(&found.in_parallel, &in_parallel, sizeof(in_parallel));
    sw_openmp_functions = found;
    kept();  // what is to be done around a fork is registered with it
}

void* sw_take(int64_t* bytes) {
    size_t size = size_t(*bytes);
    void* memory = kept().take(size);
    *bytes = int64_t(size);
    return memory;
}
void sw_give(void* memory, int64_t bytes) { kept().give(memory, size_t(bytes)); }

void sw_huge_pages(void* memory, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr uintptr_t kPage = uintptr_t(1) << 21;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(memory), end = begin + uintptr_t(bytes);
    const uintptr_t first = (begin + kPage - 1) / kPage * kPage, last = end / kPage * kPage;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

int64_t sw_recurrence_forward(const sw_recurrence* c) { return call_chosen(&sw_functions::recurrence_forward, c); }
int64_t sw_recurrence_backward(const sw_recurrence* c) { return call_chosen(&sw_functions::recurrence_backward, c); }
int64_t sw_crf_forward(const sw_crf* call) { return call_chosen(&sw_functions::crf_forward, call); }
int64_t sw_crf_backward(const sw_crf* call) { return call_chosen(&sw_functions::crf_backward, call); }
int64_t sw_crf_score(const sw_crf* call) { return call_chosen(&sw_functions::crf_score, call); }
int64_t sw_crf_score_backward(const sw_crf* call) { return call_chosen(&sw_functions::crf_score_backward, call); }
int64_t sw_readout_loss(const sw_readout* call) { return call_chosen(&sw_functions::readout_loss, call); }
int64_t sw_fill_counted(const sw_fill* call) { return call_chosen(&sw_functions::fill_counted, call); }
int64_t sw_multiply(const sw_product* call) { return call_chosen(&sw_functions::multiply, call); }
int64_t sw_deal_rows(const sw_deal* call) { return call_chosen(&sw_functions::deal_rows, call); }
int64_t sw_collect_rows(const sw_deal* call) { return call_chosen(&sw_functions::collect_rows, call); }
