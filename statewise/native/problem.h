// How operators read what torch gives them: the cell by its number, the chain of transforms from its flat form.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "walk.h"

namespace statewise {

using at::Tensor;
using Tensors = std::vector<Tensor>;

template <class T>
inline T* data(const Tensor& tensor) {
    return tensor.numel() ? tensor.data_ptr<T>() : nullptr;
}

// The chain comes flat: for each transform kIntegers integers, kNumbers numbers, and tensors by index (-1: none).
constexpr size_t kIntegers = 9, kNumbers = 2;

// find(tensor) is where its numbers begin.
template <class T, class Find>
std::vector<Operation<T>> chain_of(at::IntArrayRef integers, at::ArrayRef<double> numbers, const Tensors& tensors,
                                   int64_t hidden, Find&& find) {
    std::vector<Operation<T>> chain(integers.size() / kIntegers);
    const auto pointer = [&](int64_t index) -> T* { return index < 0 ? nullptr : find(tensors[size_t(index)]); };
    for (size_t i = 0; i < chain.size(); ++i) {
        const int64_t* word = integers.data() + i * kIntegers;
        const int64_t kind = word[0], first = word[1], second = word[2], constant = word[3], saved = word[8];
        Operation<T>& op = chain[i];
        op.kind = Kind(kind);
        if (op.kind != Kind::kCentroids) {
            op.state = {pointer(first), hidden, constant != 0};
            op.memory = {pointer(second), hidden, constant != 0};
            continue;
        }
        Centroid<T>& c = op.centroid;
        c.count = word[4];
        c.similarity = Similarity(word[5]);
        c.hard = word[6] != 0;
        c.soft = word[7] != 0;
        c.per_temperature = T(numbers[i * kNumbers]);
        c.sharpness = T(numbers[i * kNumbers + 1]);
        c.centroids = pointer(first);
        c.toward = Packed<T>::transposed(c.centroids, c.count, hidden, hidden);
        c.from = Packed<T>::plain(c.centroids, c.count, hidden, hidden);
        c.gumbel = {pointer(second), c.count, false};
        T** slots[] = {&c.before, &c.weights, &c.probabilities, &c.alpha, &c.grad_after, &c.slope};
        for (int64_t slot = 0; slot < 6 && saved + slot < int64_t(tensors.size()); ++slot) {
            *slots[slot] = pointer(saved + slot);
        }
    }
    return chain;
}

// Calls work with the cell that a number and an activation name.
template <class T, class Work>
void with_cell(int64_t cell, int64_t activation, Work&& work) {
    switch (cell) {
        case 0:
            switch (Activation(activation)) {
                case Activation::kTanh: return work(Elman<T, Activation::kTanh>{});
                case Activation::kRelu: return work(Elman<T, Activation::kRelu>{});
                case Activation::kSigmoid: return work(Elman<T, Activation::kSigmoid>{});
                case Activation::kIdentity: return work(Elman<T, Activation::kIdentity>{});
                case Activation::kModrelu: return work(Elman<T, Activation::kModrelu>{});
            }
            break;
        case 1: return work(Memory<T, false>{});
        case 2: return work(Memory<T, true>{});
        case 3: return work(Gru<T>{});
        case 4: return work(ResetBeforeGru<T>{});
        case 5: return work(Mgu<T>{});
        case 6: return work(Rac<T>{});
    }
    TORCH_CHECK(false, "statewise: the kernel knows no cell ", cell, " with activation ", activation);
}

// to = from B (+ start) for many rows, B = weight^T (or weight itself), by `threads` threads.
template <class T>
void product_into(const T* from, int64_t rows, int64_t inner, const T* weight, int64_t columns, bool transpose,
                  const T* start, T* to, int threads) {
    const auto packed = transpose ? Packed<T>::transposed(weight, columns, inner, inner)
                                  : Packed<T>::plain(weight, inner, columns, columns);
    run_team(threads, [&](int rank, int size, Barrier&) {
        const Share mine = share(rows, rank, size);
        if (start) {
            for (int64_t row = mine.begin; row < mine.end; ++row) std::copy(start, start + columns, to + row * columns);
        }
        gemm(from + mine.begin * inner, inner, mine.end - mine.begin, packed, 0, packed.panels(),
             to + mine.begin * columns, columns, start != nullptr);
    });
}

// Adds up what the threads found; a thread that had no part in it left its sum empty.
template <class T>
void total_of(const std::vector<std::vector<T>>& sums, T* total) {
    for (const auto& sum : sums) {
        for (size_t i = 0; i < sum.size(); ++i) total[i] += sum[i];
    }
}

}  // namespace statewise
