// Many networks of one shape: the same recurrence for each of them, with weights, inputs and draws of its own.
//
// The first dimension of every tensor counts the replicas, and its stride is 0 where they share one. Behind it numbers lie
// one after the other. While there are as many replicas as threads, each thread has one to itself, from the first step to the
// last: nobody waits, and the gradients of a few steps meet inputs and states while all are in the cache. Those that are left
// over, and all where the weights are too big for a core's cache, have all threads, one replica after the other.
//
// Nothing that forward leaves is used up, so the way back can be walked any number of times.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <memory>

#include "memory.h"
#include "problem.h"

namespace statewise::replicas {

// Where the numbers of one replica begin; null where there are none.
template <class T>
struct Of {
    int64_t replica;
    T* operator()(const Tensor& tensor) const {
        return tensor.numel() ? tensor.data_ptr<T>() + replica * tensor.stride(0) : nullptr;
    }
};

// Rows of every replica for what no user sees; nothing where they are not needed.
inline Tensor kept(bool needed, int64_t count, int64_t rows, int64_t columns, const at::TensorOptions& options) {
    if (!needed) return at::empty({0}, options);
    const size_t bytes = size_t(count * rows * columns) * options.dtype().itemsize();
    return bytes > Kept::kMost ? roomy({count, rows, columns}, options)
                               : buffer(count * rows, columns, options).view({count, rows, columns});
}

// Calls work(replica, threads) for each.
template <class Work>
void over_replicas(int64_t count, bool side_by_side, Work&& work) {
    const int threads = team_size(at::get_num_threads());
    const int64_t beside = side_by_side ? count - count % threads : 0;
    if (beside) {
        run_team(threads, [&](int rank, int size, Barrier&) {
            for (int64_t replica = rank; replica < beside; replica += size) work(replica, 1);
        });
    }
    for (int64_t replica = beside; replica < count; ++replica) work(replica, threads);
}

template <class T>
bool fits_a_core(const Tensor& weight) {
    return int64_t(sizeof(T)) * weight.size(1) * weight.size(2) <= kOwnCache;
}

// What does not differ among replicas.
struct Kind {
    int64_t cell, activation;
    at::IntArrayRef batch_sizes;
    bool reverse, start_at_one, mask_constant, memory_changes;
    at::IntArrayRef integers;
    at::ArrayRef<double> numbers;
};

// The tensors that both ways need.
struct Given {
    const Tensor &weight, &extra, &initial_state, &initial_memory, &mask;
    const Tensors& tensors;
};

template <class T>
Problem<T> problem_of(const Kind& kind, const Given& given, const Of<T>& of) {
    Problem<T> p;
    p.hidden = given.weight.size(2);
    p.batch = given.initial_state.size(1);
    p.turns = turns_of(kind.batch_sizes.vec(), kind.reverse);
    p.weight = of(given.weight);
    p.extra = of(given.extra);
    p.initial_state = of(given.initial_state);
    p.initial_memory = of(given.initial_memory);
    p.start_at_one = kind.start_at_one;
    p.mask = {of(given.mask), p.hidden, kind.mask_constant};
    p.memory_changes = kind.memory_changes;
    p.chain = chain_of<T>(kind.integers, kind.numbers, given.tensors, p.hidden, of);
    return p;
}

// The input term is `term`, which is changed, or inputs weight_ih^T + bias. Tensors that a cell does not need are empty.
inline Tensors forward(int64_t cell, int64_t activation, const Tensor& term_given, const Tensor& inputs,
                       const Tensor& weight_ih, const Tensor& bias, const Tensor& weight, const Tensor& apart_bias,
                       const Tensor& extra, const Tensor& initial_state, const Tensor& initial_memory,
                       at::IntArrayRef batch_sizes, bool reverse, bool start_at_one, const Tensor& mask,
                       bool mask_constant, bool memory_changes, at::IntArrayRef integers, at::ArrayRef<double> numbers,
                       const Tensors& tensors) {
    const Kind kind{cell, activation, batch_sizes, reverse, start_at_one, mask_constant, memory_changes, integers, numbers};
    const Given given{weight, extra, initial_state, initial_memory, mask, tensors};
    const bool ready = term_given.numel() > 0;
    const int64_t count = weight.size(0), rows = ready ? term_given.size(1) : inputs.size(1);
    const int64_t hidden = weight.size(2), width = weight.size(1);
    const auto room = [&](bool needed, int64_t columns) { return kept(needed, count, rows, columns, weight.options()); };
    Tensor term = ready ? term_given : room(true, width), states = roomy({count, rows, hidden}, weight.options());
    Tensor state = initial_state.contiguous().clone(), memory = initial_memory.contiguous().clone();
    Tensor apart, gated, memories, cell_memories;
    AT_DISPATCH_FLOATING_TYPES(weight.scalar_type(), "statewise_forward_replicas", [&] {
        with_cell<scalar_t>(cell, activation, [&](auto chosen) {
            using Cell = decltype(chosen);
            apart = room(Cell::apart, hidden);
            gated = room(Cell::gated_from >= 0, hidden);
            memories = room(Cell::has_memory, hidden);
            cell_memories = memory_changes ? room(true, hidden) : memories;
            over_replicas(count, fits_a_core<scalar_t>(weight), [&](int64_t replica, int threads) {
                const Of<scalar_t> of{replica};
                auto p = problem_of(kind, given, of);
                p.apart_bias = of(apart_bias);
                p.term = of(term);
                p.apart = of(apart);
                p.gated = of(gated);
                p.states = of(states);
                p.memories = of(memories);
                p.cell_memories = of(cell_memories);
                p.state = of(state);
                p.memory = of(memory);
                if (!ready && takes_inputs(p, Cell::blocks, inputs.size(2), threads)) {
                    p.input = inputs.size(2);
                    p.inputs = of(inputs);
                    p.input_weight = of(weight_ih);
                    p.input_bias = of(bias);
                } else if (!ready) {
                    product_into(of(inputs), rows, inputs.size(2), of(weight_ih), width, true, of(bias), p.term, threads);
                }
                Walk<scalar_t, Cell>(p, threads).forward();
            });
        });
    });
    return {states, state, memory, term, memories, cell_memories, apart, gated};
}

// What is wanted of a replica's weights and inputs; null: not wanted.
template <class T>
struct Sought {
    int64_t input = 0;
    const T* inputs = nullptr;
    T* weight = nullptr;
    T* weight_ih = nullptr;
    T* grad_inputs = nullptr;
    Packed<T> back;  // the input weights, packed for the gradient of the inputs
};

// From the gradients of a stretch of turns to those of the weights, which add up, and of the inputs.
template <class T, class Cell>
class Products {
public:
    Products(const Problem<T>& problem, Sought<T>& sought) : p(problem), out(sought) {
        const int64_t all = p.batch * p.hidden;
        dense_ = p.turns.front().rows == p.turns.back().rows;
        begins_ = std::any_of(p.initial_state, p.initial_state + all, [](T value) { return value != 0; });
    }

    // What met the weights, one row after the other, where it does not lie like that: masked, or of unequal lengths.
    void lay_out(size_t first, size_t last) {
        if (!out.weight || as_it_lies()) return;
        const int64_t h = p.hidden;
        const Share rows = rows_of(first, last);
        old_.resize(size_t((rows.end - rows.begin) * h));
        if (Cell::gated_from >= 0 && p.mask.data) gated_.resize(old_.size());
        for (size_t i = first; i < last; ++i) {
            const Turn& turn = p.turns[i];
            for (int64_t row = 0; row < turn.rows; ++row) {
                const int64_t to = (turn.start + row - rows.begin) * h;
                const T* from = row < turn.kept ? p.states + (p.turns[i - 1].start + row) * h : p.initial_state + row * h;
                put(turn, row, from, old_.data() + to);
                if (!gated_.empty()) put(turn, row, p.gated + (turn.start + row) * h, gated_.data() + to);
            }
        }
    }

    // The part of a thread; `buffer` has kTurnedChunk * kPanel elements.
    void add(size_t first, size_t last, int rank, int size, T* buffer) const {
        const int64_t h = p.hidden, width = Cell::blocks * h;
        const Share rows = rows_of(first, last);
        const T* grads = grad_term(rows.begin);
        if (out.grad_inputs) {
            const Share mine = share(rows.end - rows.begin, rank, size);
            gemm(grads + mine.begin * width, width, mine.end - mine.begin, out.back, 0, out.back.panels(),
                 out.grad_inputs + (rows.begin + mine.begin) * out.input, out.input, false);
        }
        if (out.weight_ih) {
            const Share mine = share(width, rank, size);
            gemm_turned(grads, width, out.inputs + rows.begin * out.input, out.input, rows.end - rows.begin, out.input,
                        mine.begin, mine.end, out.weight_ih, out.input, buffer);
        }
        if (out.weight) add_weight(first, last, rank, size, buffer);
    }

private:
    using W = Walk<T, Cell>;
    const Problem<T>& p;
    Sought<T>& out;
    bool dense_ = false, begins_ = false;
    std::vector<T> old_, gated_;

    bool as_it_lies() const { return dense_ && !p.mask.data; }

    // The rows of a stretch, which are neighbours in either direction.
    Share rows_of(size_t first, size_t last) const {
        const Turn &one = p.turns[first], &other = p.turns[last - 1];
        return {std::min(one.start, other.start), std::max(one.start + one.rows, other.start + other.rows)};
    }

    const T* grad_term(int64_t row) const { return p.grad_term + (row - p.grad_from) * Cell::blocks * p.hidden; }

    void put(const Turn& turn, int64_t row, const T* from, T* to) const {
        const T* mask = p.mask.data ? p.mask.at(turn.start, row) : nullptr;
        over_units<T>(p.hidden, [&](auto unit) {
            unit.store(to, mask ? unit.load(from) * unit.load(mask) : unit.load(from));
        });
    }

    void add_weight(size_t first, size_t last, int rank, int size, T* buffer) const {
        const int64_t h = p.hidden, width = Cell::blocks * h, cut = W::kAddedBlocks * h;
        const Share added = share(cut, rank, size), special = share(h, rank, size);
        // Rows of values from `row` of the layout on, and what they met: all blocks, or those with the state alone.
        const auto turned = [&](const T* values, int64_t row, int64_t count) {
            if (W::kAddedBlocks > 0) {
                gemm_turned(grad_term(row), width, values, h, count, h, added.begin, added.end, out.weight, h, buffer);
            }
            if (Cell::apart) {
                gemm_turned(p.grad_apart + (row - p.grad_from) * h, h, values, h, count, h, special.begin, special.end,
                            out.weight + cut * h, h, buffer);
            }
        };
        const Share rows = rows_of(first, last);
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
            gemm_turned(grad_term(rows.begin) + Cell::gated_from * h, width, values, h, rows.end - rows.begin, h,
                        special.begin, special.end, out.weight + cut * h, h, buffer);
        }
    }
};

// The way back of one replica. With `whole` the gradient of the term is wanted, and goes to p.grad_term; else it is forgotten
// stretch by stretch.
template <class T, class Cell>
void walk_back(Problem<T>& p, Sought<T>& sought, bool whole, int64_t rows, int threads) {
    Products<T, Cell> products(p, sought);
    const int64_t width = Cell::blocks * p.hidden;
    const int64_t stretch = threads > 1 ? rows : std::min(rows, kTurnedChunk + p.batch);
    const int64_t most = whole ? 0 : stretch;
    std::unique_ptr<T[]> grads(new T[size_t(most * width)]);
    std::unique_ptr<T[]> apart(new T[Cell::apart ? size_t((whole ? rows : stretch) * p.hidden) : 1]);
    if (!whole) p.grad_term = grads.get();
    p.grad_apart = apart.get();
    const size_t panel = size_t(kTurnedChunk * Packed<T>::kPanel);
    Walk<T, Cell> walk(p, threads);
    if (threads > 1) {
        walk.backward();
        products.lay_out(0, p.turns.size());
        run_team(threads, [&](int rank, int size, Barrier&) {
            std::vector<T> buffer(panel);
            products.add(0, p.turns.size(), rank, size, buffer.data());
        });
        return;
    }
    std::vector<T> buffer(panel);
    walk.backward(
        kTurnedChunk,
        [&](size_t first, size_t last) {
            if (!whole) p.grad_from = std::min(p.turns[first].start, p.turns[last - 1].start);
        },
        [&](size_t first, size_t last) {
            products.lay_out(first, last);
            products.add(first, last, 0, 1, buffer.data());
        });
}

// The gradients of inputs, input term, input weights, recurrent weights, biases (of these what is wanted), initial state and
// memory, and of the cell's own parameters.
inline Tensors backward(int64_t cell, int64_t activation, const Tensor& term, const Tensor& inputs,
                        const Tensor& weight_ih, const Tensor& weight, const Tensor& extra, const Tensor& initial_state,
                        const Tensor& initial_memory, at::IntArrayRef batch_sizes, bool reverse, const Tensor& mask,
                        bool mask_constant, bool memory_changes, at::IntArrayRef integers, at::ArrayRef<double> numbers,
                        const Tensors& tensors, const Tensors& made, const Tensor& grad_states, const Tensor& grad_final,
                        const Tensor& grad_final_memory, bool of_inputs, bool of_term, bool of_weight_ih,
                        bool of_weight, bool of_bias) {
    const Kind kind{cell, activation, batch_sizes, reverse, false, mask_constant, memory_changes, integers, numbers};
    const Given given{weight, extra, initial_state, initial_memory, mask, tensors};
    const int64_t count = weight.size(0), rows = term.size(1), hidden = weight.size(2), width = weight.size(1);
    const auto room = [&](bool needed, int64_t columns) {
        return needed ? roomy({count, rows, columns}, weight.options()) : at::empty({0}, weight.options());
    };
    const auto zeros = [&](bool needed, int64_t height, int64_t columns) {
        return needed ? at::zeros({count, height, columns}, weight.options()) : at::empty({0}, weight.options());
    };
    const int64_t input = inputs.numel() ? inputs.size(2) : 0;
    Tensor grad_inputs = room(of_inputs, input), grad_term = room(of_term, width);
    Tensor grad_weight_ih = zeros(of_weight_ih, width, input), grad_weight = zeros(of_weight, width, hidden);
    Tensor grad = grad_final.contiguous().clone(), grad_memory = grad_final_memory.contiguous().clone();
    Tensor grad_extra = at::zeros(extra.sizes(), weight.options()), grad_bias;
    AT_DISPATCH_FLOATING_TYPES(term.scalar_type(), "statewise_backward_replicas", [&] {
        with_cell<scalar_t>(cell, activation, [&](auto chosen) {
            using Cell = decltype(chosen);
            grad_bias = at::zeros({count, (Cell::blocks + Cell::apart) * hidden}, weight.options());
            over_replicas(count, fits_a_core<scalar_t>(weight), [&](int64_t replica, int threads) {
                const Of<scalar_t> of{replica};
                auto p = problem_of(kind, given, of);
                p.term = of(term);
                p.states = of(made[0]);
                p.memories = of(made[1]);
                p.cell_memories = of(made[2]);
                p.apart = of(made[3]);
                p.gated = of(made[4]);
                p.grad_states = of(grad_states);
                p.grad = of(grad);
                p.grad_memory = of(grad_memory);
                p.grad_term = of(grad_term);
                std::vector<std::vector<scalar_t>> extra_sums(size_t(std::max(threads, 1))), bias_sums(extra_sums.size());
                p.extra_sums = extra_sums.data();
                if (of_bias) p.bias_sums = bias_sums.data();
                Sought<scalar_t> sought{input, of(inputs), of(grad_weight), of(grad_weight_ih), of(grad_inputs), {}};
                if (of_inputs) sought.back = Packed<scalar_t>::plain(of(weight_ih), width, input, input);
                walk_back<scalar_t, Cell>(p, sought, of_term, rows, threads);
                total_of(extra_sums, of(grad_extra));
                total_of(bias_sums, of(grad_bias));
            });
        });
    });
    return {grad_inputs, grad_term, grad_weight_ih, grad_weight, grad_bias, grad, grad_memory, grad_extra};
}

TORCH_LIBRARY_FRAGMENT(statewise_native, library) {
    library.def(
        "forward_replicas(int cell, int activation, Tensor(a!) term, Tensor inputs, Tensor weight_ih, Tensor bias, "
        "Tensor weight, Tensor apart_bias, Tensor extra, Tensor initial_state, Tensor initial_memory, int[] batch_sizes, "
        "bool reverse, bool start_at_one, Tensor mask, bool mask_constant, bool memory_changes, int[] integers, "
        "float[] numbers, Tensor(b!)[] tensors) -> Tensor[]");
    library.def(
        "backward_replicas(int cell, int activation, Tensor term, Tensor inputs, Tensor weight_ih, Tensor weight, "
        "Tensor extra, Tensor initial_state, Tensor initial_memory, int[] batch_sizes, bool reverse, Tensor mask, "
        "bool mask_constant, bool memory_changes, int[] integers, float[] numbers, Tensor(a!)[] tensors, Tensor[] made, "
        "Tensor grad_states, Tensor grad_final, Tensor grad_final_memory, bool of_inputs, bool of_term, "
        "bool of_weight_ih, bool of_weight, bool of_bias) -> Tensor[]");
}

TORCH_LIBRARY_IMPL(statewise_native, CPU, library) {
    library.impl("forward_replicas", forward);
    library.impl("backward_replicas", backward);
}

}  // namespace statewise::replicas
