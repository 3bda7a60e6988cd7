// What depends on the instruction set for which a file is compiled.
//
// kernel.cpp is compiled once for each instruction set, and all of them are linked into one library. Each has a namespace of
// its own, and containers whose allocator is of that namespace: so no function has the same name twice, and the linker cannot
// give code for a newer processor to an older one.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define STATEWISE statewise_avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define STATEWISE statewise_avx2
#elif defined(__aarch64__)
#define STATEWISE statewise_neon
#else
#define STATEWISE statewise_baseline
#endif

namespace STATEWISE {

template <class T>
struct Allocator {
    using value_type = T;
    static constexpr std::align_val_t kAlignment{alignof(T) > 64 ? alignof(T) : 64};

    Allocator() = default;
    template <class Other>
    Allocator(const Allocator<Other>&) {}

    T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
    void deallocate(T* memory, size_t) { ::operator delete(memory, kAlignment); }

    template <class Other>
    bool operator==(const Allocator<Other>&) const { return true; }
};

template <class T>
using List = std::vector<T, Allocator<T>>;

}  // namespace STATEWISE
