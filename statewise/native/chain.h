// The state transforms, applied in place to the rows of a step, and their derivatives.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cells.h"
#include "gemm.h"

namespace STATEWISE {

enum class Kind { kMultiply, kAdd, kZoneout, kCentroids };
enum class Similarity { kDot, kEuclidean, kSquared };

// A drawn tensor: rows of the layout, or one row for each sequence where it is constant in time.
template <class T>
struct Draw {
    const T* data = nullptr;
    int64_t width = 0;
    bool constant = false;
    const T* at(int64_t start, int64_t row) const { return data + (constant ? row : start + row) * width; }
};

template <class T>
struct Centroid {
    int64_t count = 0;
    Similarity similarity = Similarity::kDot;
    bool hard = false, soft = true;
    T per_temperature = 1, sharpness = 1;
    const T* centroids = nullptr;
    Packed<T> toward, from;  // S^T and S, packed
    Draw<T> gumbel;
    // Rows of the layout: forward leaves the first four, backward the other two. `alpha` may be null.
    T *before = nullptr, *weights = nullptr, *probabilities = nullptr, *alpha = nullptr;
    T *grad_after = nullptr, *slope = nullptr;
};

template <class T>
struct Operation {
    Kind kind = Kind::kMultiply;
    Draw<T> state, memory;
    Centroid<T> centroid;
};

// Where the rows of a step lie; what forward leaves lies `from` rows earlier.
template <class T>
struct Rows {
    int64_t start, begin, end, hidden, from;
    int64_t count() const { return end - begin; }
};

namespace detail {

template <class T>
inline T distance_squared(const T* a, const T* b, int64_t n) {
    Vector<T> sum = {};
    over_units<T>(n, [&](auto unit) {
        const auto difference = unit.load(a) - unit.load(b);
        sum += difference * difference;
    });
    T total = 0;
    for (int64_t i = 0; i < Vec<T>::width; ++i) total += sum[i];
    return total;
}

template <class T>
inline void softmax(const T* z, T factor, int64_t k, T* out) {
    T top = -std::numeric_limits<T>::infinity(), total = 0;
    for (int64_t i = 0; i < k; ++i) top = z[i] > top ? z[i] : top;
    over_units<T>(k, [&](auto unit) { unit.store(out, exp_((unit.load(z) - top) * factor)); });
    for (int64_t i = 0; i < k; ++i) total += out[i];
    for (int64_t i = 0; i < k; ++i) out[i] /= total;
}

}  // namespace detail

// The state rows are moved to the centroids; `logits` is scratch of rows x count.
template <class T>
inline void move_to_centroids(const Centroid<T>& c, const Rows<T>& rows, T* states, List<T>& logits) {
    const int64_t h = rows.hidden, k = c.count, first = rows.start + rows.begin;
    const int64_t kept = first - rows.from;
    logits.resize(size_t(rows.count() * k));
    std::copy(states + first * h, states + (first + rows.count()) * h, c.before + kept * h);
    if (c.similarity == Similarity::kDot) {
        gemm(states + first * h, h, rows.count(), c.toward, 0, c.toward.panels(), logits.data(), k, false);
        for (T& z : logits) z *= c.per_temperature;
    }
    for (int64_t row = 0; row < rows.count(); ++row) {
        T* z = logits.data() + row * k;
        const T* u = c.before + (kept + row) * h;
        if (c.similarity != Similarity::kDot) {
            for (int64_t i = 0; i < k; ++i) {
                const T square = detail::distance_squared(u, c.centroids + i * h, h);
                z[i] = -(c.similarity == Similarity::kEuclidean ? std::sqrt(square) : square) * c.per_temperature;
            }
        }
        if (c.alpha) detail::softmax(z, T(1), k, c.alpha + (kept + row) * k);
        if (c.gumbel.data) {
            const T* g = c.gumbel.at(rows.start, rows.begin + row);
            for (int64_t i = 0; i < k; ++i) z[i] += g[i];
        }
        T* weights = c.weights + (kept + row) * k;
        if (c.soft) detail::softmax(z, c.sharpness, k, c.probabilities + (kept + row) * k);
        if (c.hard) {
            std::fill(weights, weights + k, T(0));
            weights[std::max_element(z, z + k) - z] = 1;
        } else {
            std::copy(c.probabilities + (kept + row) * k, c.probabilities + (kept + row + 1) * k, weights);
        }
    }
    gemm(c.weights + kept * k, k, rows.count(), c.from, 0, c.from.panels(), states + first * h, h, false);
}

// `grad` holds the gradient of the moved rows, and is replaced by that of the rows before.
template <class T>
inline void move_back(const Centroid<T>& c, const Rows<T>& rows, T* grad) {
    const int64_t h = rows.hidden, k = c.count, first = rows.start + rows.begin;
    T* mine = grad + rows.begin * h;
    std::copy(mine, mine + rows.count() * h, c.grad_after + first * h);
    if (!c.soft) return std::fill(mine, mine + rows.count() * h, T(0));
    T* slopes = c.slope + first * k;
    gemm(mine, h, rows.count(), c.toward, 0, c.toward.panels(), slopes, k, false);
    for (int64_t row = 0; row < rows.count(); ++row) {
        T* slope = slopes + row * k;
        const T* p = c.probabilities + (first + row) * k;
        const T* u = c.before + (first + row) * h;
        T mean = 0;
        for (int64_t i = 0; i < k; ++i) mean += p[i] * slope[i];
        for (int64_t i = 0; i < k; ++i) {
            slope[i] = p[i] * (slope[i] - mean) * c.sharpness * c.per_temperature;
            if (c.similarity == Similarity::kSquared) slope[i] *= 2;
            if (c.similarity == Similarity::kEuclidean) {
                const T distance = std::sqrt(detail::distance_squared(u, c.centroids + i * h, h));
                slope[i] = distance > 0 ? slope[i] / distance : T(0);
            }
        }
    }
    gemm(slopes, k, rows.count(), c.from, 0, c.from.panels(), mine, h, false);
    if (c.similarity == Similarity::kDot) return;
    for (int64_t row = 0; row < rows.count(); ++row) {
        T total = 0;
        for (int64_t i = 0; i < k; ++i) total += slopes[row * k + i];
        const T* u = c.before + (first + row) * h;
        T* to = mine + row * h;
        over_units<T>(h, [&](auto unit) { unit.store(to, unit.load(to) - total * unit.load(u)); });
    }
}

// Applies one transform to the rows of `states` (and `memories`), given the states and memories of the step before.
template <class T>
inline void apply(const Operation<T>& op, const Rows<T>& rows, T* states, T* memories, const T* old_states,
                  const T* old_memories, List<T>& scratch) {
    if (op.kind == Kind::kCentroids) return move_to_centroids(op.centroid, rows, states, scratch);
    const int64_t h = rows.hidden;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
        T* state = states + (rows.start + row) * h;
        const T* drawn = op.state.at(rows.start, row);
        if (op.kind == Kind::kMultiply) {
            over_units<T>(h, [&](auto unit) { unit.store(state, unit.load(state) * unit.load(drawn)); });
        } else if (op.kind == Kind::kAdd) {
            over_units<T>(h, [&](auto unit) { unit.store(state, unit.load(state) + unit.load(drawn)); });
        } else {
            const auto keep = [&](T* now, const T* old, const T* mask) {
                over_units<T>(h, [&](auto unit) {
                    const auto m = unit.load(mask);
                    unit.store(now, m * unit.load(old) + (1 - m) * unit.load(now));
                });
            };
            keep(state, old_states + row * h, drawn);
            if (memories) keep(memories + (rows.start - rows.from + row) * h, old_memories + row * h, op.memory.at(rows.start, row));
        }
    }
}

// The derivative of `apply`: grad and grad_memory are changed in place, what flows to the old ones is added to.
template <class T>
inline void unapply(const Operation<T>& op, const Rows<T>& rows, T* grad, T* grad_memory, T* to_old, T* to_old_memory) {
    if (op.kind == Kind::kCentroids) return move_back(op.centroid, rows, grad);
    if (op.kind == Kind::kAdd) return;
    const int64_t h = rows.hidden;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
        T* mine = grad + row * h;
        const T* drawn = op.state.at(rows.start, row);
        if (op.kind == Kind::kMultiply) {
            over_units<T>(h, [&](auto unit) { unit.store(mine, unit.load(mine) * unit.load(drawn)); });
            continue;
        }
        const auto split = [&](T* now, T* old, const T* mask) {
            over_units<T>(h, [&](auto unit) {
                const auto whole = unit.load(now), kept = unit.load(mask) * whole;
                unit.add(old, kept);
                unit.store(now, whole - kept);
            });
        };
        split(mine, to_old + row * h, drawn);
        if (grad_memory) split(grad_memory + row * h, to_old_memory + row * h, op.memory.at(rows.start, row));
    }
}

}  // namespace STATEWISE
