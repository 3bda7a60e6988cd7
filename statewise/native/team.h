// A team of threads that walk through the time steps together, and the barrier at which they meet.
//
// The threads are those of the caller's OpenMP, where it has named one (sw_use_openmp): torch's own operators run on the
// same threads, and waking them is cheap. Otherwise threads are started for each team.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#include "functions.h"
#include "platform.h"

namespace STATEWISE {

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
    // For a size that is known only inside the team: every thread says it, and it is the same.
    void begin(int size) { size_.store(size, std::memory_order_relaxed); }
    Barrier(const Barrier&) = delete;
    Barrier& operator=(const Barrier&) = delete;

    void wait() {
        const int size = size_.load(std::memory_order_relaxed);
        if (size == 1) return;
        // The number of the round is read before arriving: afterwards the last thread may already have changed it.
        const uint32_t round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        // On a machine with more threads than cores the last thread may need this core to arrive at all.
        for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
            if (given_up()) sw_out_of_memory();
            if (spins < kSpins) {
                relax();
            } else {
                std::this_thread::yield();
            }
        }
    }

    // Says that a thread will not come any more. The others, who wait for it sooner or later, give up, too.
    void give_up() { given_up_.store(true, std::memory_order_relaxed); }
    bool given_up() const { return given_up_.load(std::memory_order_relaxed); }

private:
    static constexpr int kSpins = 4000;
    std::atomic<int> size_;
    std::atomic<bool> given_up_{false};
    // On lines of their own, so that arriving does not disturb those who already wait.
    alignas(128) std::atomic<int> arrived_{0};
    alignas(128) std::atomic<uint32_t> round_{0};
};

// How many threads a team may have here: 1 inside another parallel region.
inline int team_size(int wanted) {
    constexpr int kMost = 1024;
    const bool inside = sw_openmp_functions.in_parallel && sw_openmp_functions.in_parallel();
    return inside ? 1 : std::clamp(wanted, 1, kMost);
}

// Calls work(rank, size, barrier) on up to `wanted` threads at once. Fewer may be granted, so the work must be divided
// by the `size` that it gets. What it throws, for want of memory, becomes a std::bad_alloc here, when all have ended.
template <class Work>
inline void run_team(int wanted, Work&& work) {
    const int size = team_size(wanted);
    const sw_openmp& openmp = sw_openmp_functions;
    Barrier barrier(size);
    if (size == 1) return work(0, 1, barrier);
    const auto run = [&](int rank, int granted) noexcept {
        try {
            work(rank, granted, barrier);
        } catch (...) {
            barrier.give_up();
        }
    };
    if (openmp.parallel) {
        auto enter = [&] {
            const int granted = openmp.num_threads();
            barrier.begin(granted);
            run(openmp.thread_num(), granted);
        };
        openmp.parallel([](void* given) { (*static_cast<decltype(enter)*>(given))(); }, &enter, unsigned(size), 0);
    } else {
        List<std::thread> others;
        try {
            others.reserve(size_t(size - 1));
            for (int rank = 1; rank < size; ++rank) others.emplace_back([&run, rank, size] { run(rank, size); });
        } catch (...) {  // the system has no more threads
            barrier.give_up();
        }
        if (!barrier.given_up()) run(0, size);
        for (std::thread& other : others) other.join();
    }
    if (barrier.given_up()) sw_out_of_memory();
}

// The part [begin, end) of `count` items that belongs to `rank`; parts differ by at most one item.
struct Share {
    int64_t begin, end;
};
inline Share share(int64_t count, int rank, int size) {
    return {count * rank / size, count * (rank + 1) / size};
}

}  // namespace STATEWISE
