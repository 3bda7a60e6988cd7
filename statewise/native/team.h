// A team of threads that walk through the time steps together, and the barrier at which they meet.
//
// The threads are OpenMP's, so they are the same threads that torch's own operators use, and waking them is cheap.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace statewise {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// A point that no thread passes before all `size` threads have reached it; reusable at once.
class Barrier {
public:
    explicit Barrier(int size) : size_(size) {}
    Barrier(const Barrier&) = delete;
    Barrier& operator=(const Barrier&) = delete;

    void wait() {
        if (size_ == 1) return;
        // The number of the round is read before arriving: afterwards the last thread may already have changed it.
        const uint32_t round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        // On a machine with more threads than cores the last thread may need this core to arrive at all.
        for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
            if (spins < kSpins) {
                relax();
            } else {
                std::this_thread::yield();
            }
        }
    }

private:
    static constexpr int kSpins = 4000;
    const int size_;
    // On lines of their own, so that arriving does not disturb those who already wait.
    alignas(128) std::atomic<int> arrived_{0};
    alignas(128) std::atomic<uint32_t> round_{0};
};

// How many threads a team may have here: 1 without OpenMP and inside another parallel region.
inline int team_size(int wanted) {
#if defined(_OPENMP)
    return omp_in_parallel() ? 1 : std::max(1, wanted);
#else
    (void)wanted;
    return 1;
#endif
}

// Calls work(rank, size, barrier) on up to `wanted` threads at once. Fewer may be granted, so the work must be divided
// by the `size` it is told. An exception must not leave `work`.
template <class Work>
inline void run_team(int wanted, Work&& work) {
    const int size = team_size(wanted);
#if defined(_OPENMP)
    if (size > 1) {
        Barrier* barrier = nullptr;
#pragma omp parallel num_threads(size)
        {
            // The size is known only inside, so the barrier is made there, by one thread; `single` ends in a wait.
#pragma omp single
            barrier = new Barrier(omp_get_num_threads());
            work(omp_get_thread_num(), omp_get_num_threads(), *barrier);
        }
        delete barrier;
        return;
    }
#endif
    Barrier alone(size);
    work(0, size, alone);
}

// The part [begin, end) of `count` items that belongs to `rank`; parts differ by at most one item.
struct Share {
    int64_t begin, end;
};
inline Share share(int64_t count, int rank, int size) {
    return {count * rank / size, count * (rank + 1) / size};
}

}  // namespace statewise
