// A recurrent layer in one direction, forward and backward, for many networks of one shape.
//
// While there are as many replicas as threads, each thread has one to itself, from the first step to the last, and nobody
// waits. Those that are left over, and all where the weights are too big for a core's cache, have all threads, one replica
// after the other. Nothing that forward leaves is used up, so the way back can be walked any number of times.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interface.h"
#include "walk.h"

namespace STATEWISE {

// Where the numbers of one replica begin; null where there are none.
template <class T>
struct Of {
    int64_t replica;
    T* operator()(const sw_array& array) const {
        return array.data ? static_cast<T*>(array.data) + replica * array.stride : nullptr;
    }
};

// Calls work(replica, threads) for each.
template <class Work>
void over_replicas(int64_t count, int64_t threads_given, bool side_by_side, Work&& work) {
    const int threads = team_size(int(threads_given));
    const int64_t beside = side_by_side ? count - count % threads : 0;
    if (beside) {
        run_team(threads, [&](int rank, int size, Barrier&) {
            for (int64_t replica = rank; replica < beside; replica += size) work(replica, 1);
        });
    }
    for (int64_t replica = beside; replica < count; ++replica) work(replica, threads);
}

// The chain comes flat: for each transform kIntegers integers, kNumbers numbers, and arrays by index (-1: none).
constexpr int64_t kIntegers = 9, kNumbers = 2;

template <class T>
List<Operation<T>> chain_of(const sw_recurrence& call, const Of<T>& of) {
    List<Operation<T>> chain;
    const auto pointer = [&](int64_t index) -> T* { return index < 0 ? nullptr : of(call.arrays[index]); };
    for (int64_t i = 0; i < call.transforms; ++i) {
        const int64_t* word = call.integers + i * kIntegers;
        const int64_t kind = word[0], first = word[1], second = word[2], constant = word[3], saved = word[8];
        chain.emplace_back();
        Operation<T>& op = chain.back();
        op.kind = Kind(kind);
        if (op.kind != Kind::kCentroids) {
            op.state = {pointer(first), call.hidden, constant != 0};
            op.memory = {pointer(second), call.hidden, constant != 0};
            continue;
        }
        Centroid<T>& c = op.centroid;
        c.count = word[4];
        c.similarity = Similarity(word[5]);
        c.hard = word[6] != 0;
        c.soft = word[7] != 0;
        c.per_temperature = T(call.numbers[i * kNumbers]);
        c.sharpness = T(call.numbers[i * kNumbers + 1]);
        c.centroids = pointer(first);
        c.toward = Packed<T>::transposed(c.centroids, c.count, call.hidden, call.hidden);
        c.from = Packed<T>::plain(c.centroids, c.count, call.hidden, call.hidden);
        c.gumbel = {pointer(second), c.count, false};
        T** slots[] = {&c.before, &c.weights, &c.probabilities, &c.alpha, &c.grad_after, &c.slope};
        for (int64_t slot = 0; saved >= 0 && slot < 6 && saved + slot < call.array_count; ++slot) {
            *slots[slot] = pointer(saved + slot);
        }
    }
    return chain;
}

template <class T>
Problem<T> problem_of(const sw_recurrence& call, const Of<T>& of) {
    Problem<T> p;
    p.hidden = call.hidden;
    p.batch = call.batch;
    p.turns = turns_of(call.batch_sizes, call.steps, call.batch, call.reverse);
    p.weight = of(call.weight_hh);
    p.apart_bias = of(call.apart_bias);
    p.extra = of(call.extra);
    p.initial_state = of(call.initial_state);
    p.initial_memory = of(call.initial_memory);
    p.start_at_one = call.start_at_one;
    p.mask = {of(call.mask), p.hidden, call.mask_constant != 0};
    p.chain = chain_of<T>(call, of);
    p.memory_changes = call.memory_changes;
    p.input = call.input;
    p.inputs = of(call.inputs);
    p.input_weight = of(call.weight_ih);
    p.bias = of(call.bias);
    p.given = of(call.given);
    p.second_given = of(call.second_given);
    p.coefficients = {of(call.coefficients), 1, call.coefficients_constant != 0};
    p.second = of(call.second);
    p.keep = call.keep;
    p.term = of(call.term);
    p.apart = of(call.apart);
    p.gated = of(call.gated);
    p.states = of(call.states);
    p.memories = of(call.memories);
    p.cell_memories = call.memory_changes ? of(call.cell_memories) : p.memories;
    p.state = of(call.state);
    p.memory = of(call.memory);
    p.grad_states = of(call.grad_states);
    p.grad = of(call.grad_state);
    p.grad_memory = of(call.grad_memory);
    return p;
}

// Memory for one stretch of what only the way back reads, for a pass that has no way back.
template <class T, class Cell>
class Stretch {
public:
    explicit Stretch(Problem<T>& p) {
        const int64_t h = p.hidden, rows = std::min(kStretch + p.batch, p.turns.back().start + p.turns.front().start + p.batch);
        const auto take = [&](bool needed, int64_t width) -> T* {
            if (!needed) return nullptr;
            buffers_.emplace_back(size_t(rows * width));
            return buffers_.back().data();
        };
        p.term = take(true, Cell::blocks * h);
        p.second = take(p.second_given, Cell::blocks * h);
        p.apart = take(Cell::apart, h);
        p.gated = take(Cell::gated_from >= 0, h);
        p.memories = take(Cell::has_memory, h);
        p.cell_memories = p.memory_changes ? take(true, h) : p.memories;
        for (auto& op : p.chain) {
            if (op.kind != Kind::kCentroids) continue;
            op.centroid.before = take(true, h);
            op.centroid.weights = take(true, op.centroid.count);
            op.centroid.probabilities = take(true, op.centroid.count);
            op.centroid.alpha = nullptr;
        }
    }

private:
    List<List<T>> buffers_;
};

// From the gradients of a stretch of turns to those of the weights, which add up, and of the inputs.
template <class T, class Cell>
class Products {
public:
    Products(const Problem<T>& problem, const sw_recurrence& call, const Of<T>& of)
        : p(problem), weight_(of(call.grad_weight_hh)), weight_ih_(of(call.grad_weight_ih)), inputs_(of(call.grad_inputs)) {
        dense_ = p.turns.front().rows == p.turns.back().rows;
        const int64_t all = p.batch * p.hidden;
        for (int64_t i = 0; i < all && !begins_; ++i) begins_ = p.initial_state[i] != 0;
        if (inputs_) back_ = Packed<T>::plain(p.input_weight, Cell::blocks * p.hidden, p.input, p.input);
    }

    // By one thread, before all add: room for what met the weights, where it does not lie row after row.
    void make_room(size_t first, size_t last) {
        if (!weight_ || as_it_lies()) return;
        const Share rows = rows_between(p.turns, first, last);
        old_.resize(size_t((rows.end - rows.begin) * p.hidden));
        if (Cell::gated_from >= 0 && p.mask.data) gated_.resize(old_.size());
    }

    // A thread's part; `buffer` has kTurnedChunk * kPanel elements.
    void add(size_t first, size_t last, int rank, int size, Barrier& barrier, T* buffer) {
        const int64_t width = Cell::blocks * p.hidden;
        const Share rows = rows_between(p.turns, first, last);
        if (weight_ && !as_it_lies()) {
            lay_out(first, last, rows, rank, size);
            barrier.wait();
        }
        const T* grads = grad_term(rows.begin);
        if (inputs_) {
            const Share mine = share(rows.end - rows.begin, rank, size);
            gemm(grads + mine.begin * width, width, mine.end - mine.begin, back_, 0, back_.panels(),
                 inputs_ + (rows.begin + mine.begin) * p.input, p.input, false);
        }
        if (weight_ih_) {
            const Share mine = share(width, rank, size);
            gemm_turned(grads, width, p.inputs + rows.begin * p.input, p.input, rows.end - rows.begin, p.input, mine.begin,
                        mine.end, weight_ih_, p.input, buffer);
        }
        if (weight_) add_weight(first, last, rank, size, buffer);
    }

private:
    using W = Walk<T, Cell>;
    const Problem<T>& p;
    T *weight_, *weight_ih_, *inputs_;
    bool dense_ = false, begins_ = false;
    Packed<T> back_;
    List<T> old_, gated_;

    bool as_it_lies() const { return dense_ && !p.mask.data; }

    const T* grad_term(int64_t row) const { return p.grad_term + (row - p.term_from) * Cell::blocks * p.hidden; }

    // What met the weights, masked, or of unequal lengths: one row after the other.
    void lay_out(size_t first, size_t last, const Share& rows, int rank, int size) {
        const int64_t h = p.hidden;
        for (size_t i = first; i < last; ++i) {
            const Turn& turn = p.turns[i];
            const Share mine = share(turn.rows, rank, size);
            for (int64_t row = mine.begin; row < mine.end; ++row) {
                const int64_t to = (turn.start + row - rows.begin) * h;
                const T* from = row < turn.kept ? p.states + (p.turns[i - 1].start + row) * h : p.initial_state + row * h;
                put(turn, row, from, old_.data() + to);
                if (!gated_.empty()) put(turn, row, p.gated + (turn.start + row) * h, gated_.data() + to);
            }
        }
    }

    void put(const Turn& turn, int64_t row, const T* from, T* to) const {
        const T* mask = p.mask.data ? p.mask.at(turn.start, row) : nullptr;
        over_units<T>(p.hidden, [&](auto unit) {
            unit.store(to, mask ? unit.load(from) * unit.load(mask) : unit.load(from));
        });
    }

    void add_weight(size_t first, size_t last, int rank, int size, T* buffer) const {
        const int64_t h = p.hidden, cut = W::kAddedBlocks * h;
        const Share added = share(cut, rank, size), special = share(h, rank, size);
        const bool mixes = p.coefficients.data;
        // Rows of values from `row` of the layout on, and what they met: all blocks, or those with the state alone.
        const auto turned = [&](const T* values, int64_t row, int64_t count) {
            if (W::kAddedBlocks > 0) {
                const T* grads = mixes ? p.grad_product + (row - p.grad_from) * cut : grad_term(row);
                gemm_turned(grads, mixes ? cut : Cell::blocks * h, values, h, count, h, added.begin, added.end, weight_, h,
                            buffer);
            }
            if (Cell::apart) {
                gemm_turned(p.grad_apart + (row - p.grad_from) * h, h, values, h, count, h, special.begin, special.end,
                            weight_ + cut * h, h, buffer);
            }
        };
        const Share rows = rows_between(p.turns, first, last);
        if (!as_it_lies()) {
            turned(old_.data(), rows.begin, rows.end - rows.begin);
        } else {
            const size_t later = std::max<size_t>(first, 1);
            if (later < last) {
                const size_t low = p.turns[later].start > p.turns[later - 1].start ? later : last - 1;
                turned(p.states + p.turns[low - 1].start * h, p.turns[low].start, int64_t(last - later) * p.batch);
            }
            if (first == 0 && begins_) turned(p.initial_state, p.turns[0].start, p.batch);
        }
        if (Cell::gated_from >= 0) {
            const T* values = gated_.empty() ? p.gated + rows.begin * h : gated_.data();
            gemm_turned(grad_term(rows.begin) + Cell::gated_from * h, Cell::blocks * h, values, h, rows.end - rows.begin, h,
                        special.begin, special.end, weight_ + cut * h, h, buffer);
        }
    }
};

// Adds up what the threads found; a thread that had no part in it left its sum empty.
template <class T>
void total_of(const List<List<T>>& sums, T* total) {
    for (const auto& sum : sums) {
        for (size_t i = 0; i < sum.size(); ++i) total[i] += sum[i];
    }
}

template <class T, class Cell>
void forward_one(const sw_recurrence& call, int64_t replica, int threads) {
    auto p = problem_of(call, Of<T>{replica});
    if (p.keep) {
        Walk<T, Cell>(p, threads).forward();
    } else {
        const Stretch<T, Cell> stretch(p);
        Walk<T, Cell>(p, threads).forward();
    }
}

template <class T, class Cell>
void backward_one(const sw_recurrence& call, int64_t replica, int threads) {
    const Of<T> of{replica};
    auto p = problem_of(call, of);
    Products<T, Cell> products(p, call, of);
    // Where the weights are big, more rows at a time: each stretch reads and writes all their gradients.
    const int64_t least = by_columns(p, Cell::blocks, threads) ? 4 * kStretch : kStretch;
    const int64_t rows = std::min(call.rows, least + p.batch), h = p.hidden;
    const bool whole = call.grad_given.data;
    List<T> term(size_t(whole ? 0 : rows * Cell::blocks * h)), apart(size_t(Cell::apart ? rows * h : 0));
    List<T> product(size_t(p.coefficients.data ? rows * Walk<T, Cell>::kAddedBlocks * h : 0));
    p.grad_term = whole ? of(call.grad_given) : term.data();
    p.grad_second = of(call.grad_second);
    p.grad_apart = apart.data();
    p.grad_product = product.data();
    List<List<T>> extra_sums{size_t(threads)}, bias_sums{size_t(threads)};
    p.extra_sums = extra_sums.data();
    if (call.grad_bias.data) p.bias_sums = bias_sums.data();
    List<List<T>> buffers(size_t(threads), List<T>(size_t(kTurnedChunk * Packed<T>::kPanel)));
    Walk<T, Cell>(p, threads).backward(
        least,
        [&](size_t first, size_t last) {
            p.grad_from = rows_between(p.turns, first, last).begin;
            if (!whole) p.term_from = p.grad_from;
            products.make_room(first, last);
        },
        [&](size_t first, size_t last, int rank, int size, Barrier& barrier) {
            products.add(first, last, rank, size, barrier, buffers[size_t(rank)].data());
        });
    if (Cell::extra_rows) total_of(extra_sums, of(call.grad_extra));
    if (call.grad_bias.data) total_of(bias_sums, of(call.grad_bias));
}

// Calls work with the cell that a number and an activation name; false if there is none.
template <class T, class Work>
bool with_cell(int64_t cell, int64_t activation, Work&& work) {
    switch (cell) {
        case 0:
            switch (Activation(activation)) {
                case Activation::kTanh: return work(Elman<T, Activation::kTanh>{}), true;
                case Activation::kRelu: return work(Elman<T, Activation::kRelu>{}), true;
                case Activation::kSigmoid: return work(Elman<T, Activation::kSigmoid>{}), true;
                case Activation::kIdentity: return work(Elman<T, Activation::kIdentity>{}), true;
                case Activation::kModrelu: return work(Elman<T, Activation::kModrelu>{}), true;
            }
            return false;
        case 1: return work(Memory<T, false>{}), true;
        case 2: return work(Memory<T, true>{}), true;
        case 3: return work(Gru<T>{}), true;
        case 4: return work(ResetBeforeGru<T>{}), true;
        case 5: return work(Mgu<T>{}), true;
        case 6: return work(Rac<T>{}), true;
    }
    return false;
}

template <class T>
bool fits_a_core(const sw_recurrence& call, int64_t blocks) {
    return int64_t(sizeof(T)) * blocks * call.hidden * call.hidden <= kOwnCache;
}

template <class T>
int64_t recurrence(const sw_recurrence& call, bool back) {
    if (!call.rows) return 0;
    return !with_cell<T>(call.cell, call.activation, [&](auto chosen) {
        using Cell = decltype(chosen);
        const bool fits = call.replicas > 1 && fits_a_core<T>(call, Cell::blocks);
        over_replicas(call.replicas, call.threads, fits, [&](int64_t replica, int threads) {
            (back ? backward_one<T, Cell> : forward_one<T, Cell>)(call, replica, threads);
        });
    });
}

}  // namespace STATEWISE
