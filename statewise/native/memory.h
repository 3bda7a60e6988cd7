// Big buffers that outlive a step.
//
// A training step takes and gives back the same buffers again and again. The C library hands big ones back to the system,
// which then clears every page anew: with pairs, whose buffers are many, that took as long as all their arithmetic. Here a
// few are kept for the next step, within a bound.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace statewise {

class Kept {
public:
    static constexpr size_t kLeast = size_t(1) << 18, kMost = size_t(1) << 26;  // smaller ones cost nothing; all together

    // One for the whole process; never destroyed, since tensors may be given back while it ends.
    static Kept& all() {
        static Kept* kept = new Kept;
        return *kept;
    }

    // A block of at least so many bytes; `bytes` becomes what it has.
    void* take(size_t& bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        auto best = blocks_.end();
        for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
            const bool fits = block->bytes >= bytes && block->bytes <= bytes + bytes / 2;
            if (fits && (best == blocks_.end() || block->bytes < best->bytes)) best = block;
        }
        if (best == blocks_.end()) return ::operator new(bytes, std::align_val_t(64));
        void* memory = best->memory;
        bytes = best->bytes;
        held_ -= bytes;
        blocks_.erase(best);
        return memory;
    }

    // Back for the next; the oldest make room.
    void give(void* memory, size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        blocks_.push_back({memory, bytes});
        held_ += bytes;
        while (held_ > kMost) {
            held_ -= blocks_.front().bytes;
            ::operator delete(blocks_.front().memory, std::align_val_t(64));
            blocks_.pop_front();
        }
    }

private:
    struct Block {
        void* memory;
        size_t bytes;
    };
    std::mutex mutex_;
    std::deque<Block> blocks_;
    size_t held_ = 0;
};

// An unfilled matrix for what no user sees.
inline at::Tensor buffer(int64_t rows, int64_t columns, const at::TensorOptions& options) {
    size_t bytes = size_t(rows * columns) * options.dtype().itemsize();
    if (bytes < Kept::kLeast || bytes > Kept::kMost) return at::empty({rows, columns}, options);
    void* memory = Kept::all().take(bytes);
    return at::from_blob(memory, {rows, columns}, [bytes](void* block) { Kept::all().give(block, bytes); }, options);
}

// An unfilled tensor of any size for what users see. A very big one comes from the system anew each time, page by page, which may take longer
// than all that is computed into it; so the system is asked for huge pages, as far as it gives them to those who ask.
inline at::Tensor roomy(at::IntArrayRef sizes, const at::TensorOptions& options) {
    at::Tensor made = at::empty(sizes, options);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr uintptr_t kPage = uintptr_t(1) << 21;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(made.data_ptr()), end = begin + made.nbytes();
    const uintptr_t first = (begin + kPage - 1) / kPage * kPage, last = end / kPage * kPage;
    if (made.nbytes() >= 4 * kPage) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
    return made;
}

}  // namespace statewise
