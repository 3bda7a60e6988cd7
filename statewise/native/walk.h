// The walk through the time steps, forward and backward, for one layer in one direction.
//
// Two ways to divide the work among threads. By rows: each thread takes some sequences through all steps, and nobody
// ever waits; every thread then streams the whole of U through its cache at each step. By columns: at each step the
// threads share the columns of the product and then the rows of the rest, and meet twice a step; each streams only its
// part of U. The first is better while U stays in a core's own cache, the second beyond.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "cells.h"
#include "chain.h"
#include "gemm.h"
#include "team.h"

namespace STATEWISE {

// One step: its first row in the layout, how many sequences run, and how many of them ran in the step before.
struct Turn {
    int64_t start, rows, kept;
};

inline List<Turn> turns_of(const int64_t* batch_sizes, int64_t steps, int64_t batch, bool reverse) {
    List<Turn> turns;
    int64_t start = 0;
    for (int64_t step = 0; step < steps; ++step) {
        const int64_t rows = batch_sizes ? batch_sizes[step] : batch;
        turns.push_back({start, rows, 0});
        start += rows;
    }
    if (reverse) std::reverse(turns.begin(), turns.end());
    for (size_t i = 1; i < turns.size(); ++i) turns[i].kept = std::min(turns[i - 1].rows, turns[i].rows);
    return turns;
}

// Everything that forward and backward share; pointers are to rows of the layout unless a comment says batch.
template <class T>
struct Problem {
    int64_t hidden = 0, batch = 0;
    List<Turn> turns;
    const T* weight = nullptr;      // U, (blocks * hidden, hidden)
    const T* apart_bias = nullptr;  // (hidden)
    const T* extra = nullptr;
    const T* initial_state = nullptr;   // batch
    const T* initial_memory = nullptr;  // batch
    bool start_at_one = false;
    Draw<T> mask;  // of the state on its way into the product
    List<Operation<T>> chain;
    bool memory_changes = false;  // a transform changes the memory, so the cell's own is kept beside it

    // The input term is inputs W^T + bias, made step by step where the weights fit into the cache, else stretch by stretch.
    int64_t input = 0;
    const T* inputs = nullptr;
    const T* input_weight = nullptr;  // W, (blocks * hidden, input)
    const T* bias = nullptr;          // (blocks * hidden), may be null

    // Or it is given but for the bias. With through-time mixing those of both members are, and the weight of the first; what
    // backward needs of the second member goes to `second`.
    const T* given = nullptr;
    const T* second_given = nullptr;
    Draw<T> coefficients;           // width 1; no data: nothing is mixed
    T* second = nullptr;

    // What backward reads, from the row `from` on; without `keep` there is room for one stretch of steps only.
    bool keep = true;
    int64_t from = 0;
    T* term = nullptr;
    T* apart = nullptr;
    T* gated = nullptr;
    T* states = nullptr;
    T* memories = nullptr;
    T* cell_memories = nullptr;  // the same as memories unless memory_changes
    T* state = nullptr;          // batch: the present state, at the end the final one
    T* memory = nullptr;         // batch

    // Backward only.
    const T* grad_states = nullptr;  // may be null
    T* grad = nullptr;               // batch: at first of the final state, at the end of the initial one
    T* grad_memory = nullptr;        // batch
    // Of the input terms from the row `term_from` on; of the product kept apart, and with mixing of the products that are
    // added, from the row `grad_from` on.
    T* grad_term = nullptr;
    T* grad_second = nullptr;
    int64_t term_from = 0;
    T* grad_apart = nullptr;
    T* grad_product = nullptr;
    int64_t grad_from = 0;
    // One of each for every thread: the gradients of the cell's own parameters, and of the biases (those of the term,
    // then of the product kept apart), if they are wanted.
    List<T>* extra_sums = nullptr;
    List<T>* bias_sums = nullptr;
};

// What stays in a core's own cache beside the rows that are worked on.
constexpr int64_t kOwnCache = 768 * 1024;

// How many rows a stretch of steps has at least: what it leaves stays in the cache.
constexpr int64_t kStretch = 256;

// The rows of a stretch of turns, which are neighbours in either direction.
inline Share rows_between(const List<Turn>& turns, size_t first, size_t last) {
    const Turn &one = turns[first], &other = turns[last - 1];
    return {std::min(one.start, other.start), std::max(one.start + one.rows, other.start + other.rows)};
}

// Whether the threads share columns rather than rows.
template <class T>
inline bool by_columns(const Problem<T>& p, int64_t blocks, int threads) {
    return threads > 1 && (int64_t(sizeof(T)) * blocks * p.hidden * p.hidden > kOwnCache || p.batch < 4 * threads);
}

// Whether the products with the inputs are best made step by step, while a step's rows are in the cache.
template <class T>
inline bool takes_inputs(const Problem<T>& p, int64_t blocks, int64_t input, int threads) {
    return !by_columns(p, blocks, threads) && int64_t(sizeof(T)) * blocks * p.hidden * (p.hidden + input) <= kOwnCache;
}

template <class T, class Cell>
class Walk {
public:
    explicit Walk(Problem<T>& problem, int threads)
        : p(problem),
          threads_(threads),
          by_columns_(by_columns(problem, Cell::blocks, threads)),
          takes_inputs_(problem.inputs && takes_inputs(problem, Cell::blocks, problem.input, threads)) {}

    void forward() {
        pack_forward();
        if (p.mask.data) masked_.resize(size_t(p.batch * p.hidden));
        if (mixes()) product_.resize(size_t(p.batch * kAddedBlocks * p.hidden));
        const int64_t rows = p.keep ? std::numeric_limits<int64_t>::max() : kStretch;
        run_team(threads_, [&](int rank, int size, Barrier& barrier) {
            List<T> scratch;
            for (size_t first = 0, last; first < p.turns.size(); first = last) {
                last = first;
                for (int64_t found = 0; last < p.turns.size() && found < rows; ++last) found += p.turns[last].rows;
                if (!p.keep) {
                    // What the stretch before has left makes room for what this one leaves.
                    barrier.wait();
                    if (rank == 0) p.from = rows_between(p.turns, first, last).begin;
                    barrier.wait();
                }
                if (begin_stretch(rows_between(p.turns, first, last), rank, size)) barrier.wait();
                for (size_t i = first; i < last; ++i) step(p.turns[i], rank, size, barrier, scratch);
            }
        });
    }

    // In stretches of at least `rows` rows: before(first, last), by one thread, and after(first, last, rank, size, barrier), by
    // all, get the places of a stretch's turns, so that gradients are used while they are in the cache.
    template <class Before, class After>
    void backward(int64_t rows, Before&& before, After&& after) {
        prepare_backward();
        run_team(threads_, [&](int rank, int size, Barrier& barrier) {
            begin_sums(rank);
            List<T> scratch;
            for (size_t last = p.turns.size(), first; last > 0; last = first) {
                first = last;
                for (int64_t found = 0; first > 0 && found < rows; --first) found += p.turns[first - 1].rows;
                barrier.wait();
                if (rank == 0) before(first, last);
                barrier.wait();
                for (size_t i = last; i-- > first;) {
                    unstep(p.turns[i], i > 0 ? &p.turns[i - 1] : nullptr, rank, size, barrier, scratch);
                }
                barrier.wait();
                after(first, last, rank, size, barrier);
            }
        });
    }

    // The blocks whose product with the state is merely added to the input term.
    static constexpr int64_t kAddedBlocks =
        Cell::gated_from >= 0 ? Cell::gated_from : Cell::blocks - (Cell::apart ? 1 : 0);

private:
    static_assert(Cell::fused || !Cell::has_memory, "mixing a memory is written in the cell");

    Problem<T>& p;
    int threads_;
    const bool by_columns_, takes_inputs_;
    bool feeds_old_ = false;
    Packed<T> added_, special_;  // the products with the state that are added, and the one kept apart or gated
    Packed<T> input_;
    List<T> masked_, work_, through_, old_memory_, product_;

    // The cells whose second product depends on their gates have no code for mixing.
    bool mixes() const { return Cell::gated_from < 0 && p.coefficients.data; }

    // Rows of the term that begin with the bias, if there is one.
    void begin_rows(T* term, const Share& rows) const {
        const int64_t width = Cell::blocks * p.hidden;
        if (!p.bias) return;
        for (int64_t row = rows.begin; row < rows.end; ++row) std::copy(p.bias, p.bias + width, term + row * width);
    }

    // The input term of many steps at once, a thread's share of it; false where there is nothing to do.
    bool begin_stretch(const Share& rows, int rank, int size) const {
        if (takes_inputs_ || mixes()) return false;
        const int64_t width = Cell::blocks * p.hidden;
        const Share part = share(rows.end - rows.begin, rank, size);
        T* term = p.term + (rows.begin - p.from) * width;
        begin_rows(term, part);
        if (p.inputs) {
            gemm(p.inputs + (rows.begin + part.begin) * p.input, p.input, part.end - part.begin, input_, 0, input_.panels(),
                 term + part.begin * width, width, p.bias != nullptr);
            return true;
        }
        const T* given = p.given + rows.begin * width;
        for (int64_t row = part.begin; row < part.end; ++row) {
            T* to = term + row * width;
            over_units<T>(width, [&](auto unit) {
                const auto value = unit.load(given + row * width);
                unit.store(to, p.bias ? value + unit.load(to) : value);
            });
        }
        return true;
    }

    // The rows of a step that belong to a thread.
    Share rows_of(const Turn& turn, int rank, int size) const {
        if (by_columns_) return share(turn.rows, rank, size);
        const Share mine = share(p.batch, rank, size);
        return {std::min(mine.begin, turn.rows), std::min(mine.end, turn.rows)};
    }

    void meet(Barrier& barrier) const {
        if (by_columns_) barrier.wait();
    }

    // to (+)= from B, for the part of the product that belongs to a thread.
    void multiply(const T* from, int64_t lda, const Packed<T>& b, T* to, int64_t ldc, bool accumulate, const Turn& turn,
                  int rank, int size) const {
        if (by_columns_) {
            const Share panels = share(b.panels(), rank, size);
            gemm(from, lda, turn.rows, b, panels.begin, panels.end, to, ldc, accumulate);
        } else {
            const Share mine = rows_of(turn, rank, size);
            gemm(from + mine.begin * lda, lda, mine.end - mine.begin, b, 0, b.panels(), to + mine.begin * ldc, ldc,
                 accumulate);
        }
    }

    void pack_forward() {
        const int64_t h = p.hidden;
        if (kAddedBlocks > 0) added_ = Packed<T>::transposed(p.weight, kAddedBlocks * h, h, h);
        if (kAddedBlocks < Cell::blocks) special_ = Packed<T>::transposed(p.weight + kAddedBlocks * h * h, h, h, h);
        if (p.inputs) input_ = Packed<T>::transposed(p.input_weight, Cell::blocks * h, p.input, p.input);
    }

    void pack_backward() {
        const int64_t h = p.hidden;
        if (kAddedBlocks > 0) added_ = Packed<T>::plain(p.weight, kAddedBlocks * h, h, h);
        if (kAddedBlocks < Cell::blocks) special_ = Packed<T>::plain(p.weight + kAddedBlocks * h * h, h, h, h);
    }

    void prepare_backward() {
        pack_backward();
        work_.resize(size_t(p.batch * p.hidden));
        if (p.mask.data) masked_.resize(size_t(p.batch * p.hidden));
        if (Cell::gated_from >= 0) through_.resize(size_t(p.batch * p.hidden));
        if (p.memory_changes) old_memory_.resize(size_t(p.batch * p.hidden));
        for (const auto& op : p.chain) feeds_old_ = feeds_old_ || op.kind == Kind::kZoneout;
    }

    void begin_sums(int rank) const {
        if (Cell::extra_rows) p.extra_sums[rank].assign(size_t(Cell::extra_rows * p.hidden), T(0));
        if (p.bias_sums) p.bias_sums[rank].assign(size_t((Cell::blocks + Cell::apart) * p.hidden), T(0));
    }

    Row<T> row_of(const Turn& turn, int64_t row) const {
        const int64_t h = p.hidden, at = turn.start + row;
        Row<T> r{};
        r.hidden = h;
        r.term = p.term + (at - p.from) * Cell::blocks * h;
        r.apart = Cell::apart ? p.apart + (at - p.from) * h : nullptr;
        r.apart_bias = p.apart_bias;
        r.apart_offset = p.start_at_one && row >= turn.kept ? T(1) : T(0);
        r.extra = p.extra;
        r.state = p.state + row * h;
        r.memory = Cell::has_memory ? p.memory + row * h : nullptr;
        r.gated = Cell::gated_from >= 0 ? p.gated + (at - p.from) * h : nullptr;
        r.new_state = p.states + at * h;
        r.new_memory = Cell::has_memory ? p.cell_memories + (at - p.from) * h : nullptr;
        return r;
    }

    void step(const Turn& turn, int rank, int size, Barrier& barrier, List<T>& scratch) {
        const int64_t h = p.hidden, width = Cell::blocks * h;
        const Share mine = rows_of(turn, rank, size);
        const T* source = p.state;
        if (p.mask.data) {
            for (int64_t row = mine.begin; row < mine.end; ++row) mask_row(turn, row, p.state, masked_.data());
            source = masked_.data();
            meet(barrier);
        }
        T* term = p.term + (turn.start - p.from) * width;
        if (takes_inputs_) {
            begin_rows(term, mine);
            multiply(p.inputs + turn.start * p.input, p.input, input_, term, width, p.bias != nullptr, turn, rank, size);
        }
        if (kAddedBlocks > 0 && mixes()) {
            multiply(source, h, added_, product_.data(), kAddedBlocks * h, false, turn, rank, size);
        } else if (kAddedBlocks > 0) {
            multiply(source, h, added_, term, width, true, turn, rank, size);
        }
        if (Cell::apart) multiply(source, h, special_, p.apart + (turn.start - p.from) * h, h, false, turn, rank, size);
        meet(barrier);
        if constexpr (Cell::gated_from >= 0) {
            for (int64_t row = mine.begin; row < mine.end; ++row) Cell::open(row_of(turn, row));
            T* gated = p.gated + (turn.start - p.from) * h;
            const T* product_source = gated;
            if (p.mask.data) {
                for (int64_t row = mine.begin; row < mine.end; ++row) mask_row(turn, row, gated, masked_.data());
                product_source = masked_.data();
            }
            meet(barrier);
            multiply(product_source, h, special_, term + Cell::gated_from * h, width, true, turn, rank, size);
            meet(barrier);
        }
        if (mixes()) {
            scratch.resize(size_t(h));
            for (int64_t row = mine.begin; row < mine.end; ++row) mix_row(turn, row, scratch.data());
        } else {
            for (int64_t row = mine.begin; row < mine.end; ++row) Cell::forward(row_of(turn, row));
        }
        settle(turn, mine, scratch);
        meet(barrier);
    }

    // The cell for both members of a pair, from one state; state and memory are mixed. `other` is a row of scratch.
    void mix_row(const Turn& turn, int64_t row, T* other) const {
        const int64_t h = p.hidden, width = Cell::blocks * h, at = turn.start + row;
        const Row<T> first = row_of(turn, row);
        const PairRow<T> pair{p.given + at * width, p.second_given + at * width,
                              product_.data() + row * kAddedBlocks * h, p.bias, p.second + (at - p.from) * width,
                              *p.coefficients.at(turn.start, row)};
        if constexpr (Cell::fused) {
            Cell::forward_pair(first, pair);
        } else {
            Row<T> second = first;
            second.term = pair.term;
            second.new_state = other;
            // The product that is kept apart is complete after the first.
            second.apart_bias = nullptr;
            second.apart_offset = 0;
            begin_terms(first, pair);
            Cell::forward(first);
            Cell::forward(second);
            const T weight = pair.weight;
            over_units<T>(h, [&](auto unit) {
                unit.store(first.new_state, weight * unit.load(first.new_state) + (1 - weight) * unit.load(other));
            });
        }
    }

    // The terms of both members with the products and biases that are added to them.
    static void begin_terms(const Row<T>& row, const PairRow<T>& pair) {
        const int64_t width = Cell::blocks * row.hidden, added = kAddedBlocks * row.hidden;
        over_units<T>(added, [&](auto unit) {
            auto sum = unit.load(pair.product);
            if (pair.bias) sum += unit.load(pair.bias);
            unit.store(row.term, unit.load(pair.first) + sum);
            unit.store(pair.term, unit.load(pair.second) + sum);
        });
        std::copy(pair.first + added, pair.first + width, row.term + added);
        std::copy(pair.second + added, pair.second + width, pair.term + added);
    }

    // After the cell: the transforms, and the new state and memory become the present ones.
    void settle(const Turn& turn, const Share& mine, List<T>& scratch) {
        const int64_t h = p.hidden, from = (turn.start + mine.begin) * h, to = (turn.start + mine.end) * h;
        const int64_t kept = from - p.from * h, kept_to = to - p.from * h;
        if (mine.begin >= mine.end) return;
        if (p.memory_changes) std::copy(p.cell_memories + kept, p.cell_memories + kept_to, p.memories + kept);
        const Rows<T> rows{turn.start, mine.begin, mine.end, h, p.from};
        for (const auto& op : p.chain) apply(op, rows, p.states, p.memories, p.state, p.memory, scratch);
        std::copy(p.states + from, p.states + to, p.state + mine.begin * h);
        if (Cell::has_memory) std::copy(p.memories + kept, p.memories + kept_to, p.memory + mine.begin * h);
    }

    void mask_row(const Turn& turn, int64_t row, const T* from, T* to) const {
        const T* mask = p.mask.at(turn.start, row);
        over_units<T>(p.hidden, [&](auto unit) {
            unit.store(to + row * p.hidden, unit.load(from + row * p.hidden) * unit.load(mask));
        });
    }

    RowGrad<T> grad_of(const Turn& turn, const Turn* before, int64_t row, int rank) {
        const int64_t h = p.hidden, at = turn.start + row;
        const bool fresh = row >= turn.kept;
        RowGrad<T> r{};
        r.hidden = h;
        r.saved = p.term + at * Cell::blocks * h;
        r.apart = Cell::apart ? p.apart + at * h : nullptr;
        r.extra = p.extra;
        r.state = fresh ? p.initial_state + row * h : p.states + (before->start + row) * h;
        if (Cell::has_memory) {
            r.memory = fresh ? p.initial_memory + row * h : p.memories + (before->start + row) * h;
            r.new_memory = p.cell_memories + at * h;
            r.grad_memory = p.grad_memory + row * h;
        }
        r.grad_state = work_.data() + row * h;
        r.grad_term = p.grad_term + (at - p.term_from) * Cell::blocks * h;
        r.grad_apart = Cell::apart ? p.grad_apart + (at - p.grad_from) * h : nullptr;
        r.direct = p.grad + row * h;
        r.through = Cell::gated_from >= 0 ? through_.data() + row * h : nullptr;
        r.extra_sum = Cell::extra_rows ? p.extra_sums[rank].data() : nullptr;
        return r;
    }

    void unstep(const Turn& turn, const Turn* before, int rank, int size, Barrier& barrier, List<T>& scratch) {
        const int64_t h = p.hidden, width = Cell::blocks * h;
        const Share mine = rows_of(turn, rank, size);
        begin_unstep(turn, mine);
        if (mixes()) {
            scratch.resize(size_t(2 * h));
            for (int64_t row = mine.begin; row < mine.end; ++row) unmix_row(turn, before, row, rank, scratch.data());
        } else {
            for (int64_t row = mine.begin; row < mine.end; ++row) Cell::backward(grad_of(turn, before, row, rank));
        }
        finish_memory(mine);
        meet(barrier);
        T* grad_term = p.grad_term + (turn.start - p.term_from) * width;
        if constexpr (Cell::gated_from >= 0) {
            multiply(grad_term + Cell::gated_from * h, width, special_, through_.data(), h, false, turn, rank, size);
            meet(barrier);
            for (int64_t row = mine.begin; row < mine.end; ++row) {
                if (p.mask.data) mask_row(turn, row, through_.data(), through_.data());
                Cell::close(grad_of(turn, before, row, rank));
            }
            meet(barrier);
        }
        if (p.bias_sums) add_up(turn, mine, p.bias_sums[rank].data());
        const bool masked = p.mask.data != nullptr;
        T* to = masked ? masked_.data() : p.grad;
        bool accumulate = !masked && (Cell::direct || feeds_old_);
        if (kAddedBlocks > 0 && mixes()) {
            const int64_t added = kAddedBlocks * h;
            multiply(p.grad_product + (turn.start - p.grad_from) * added, added, added_, to, h, accumulate, turn, rank, size);
        } else if (kAddedBlocks > 0) {
            multiply(grad_term, width, added_, to, h, accumulate, turn, rank, size);
        }
        accumulate = accumulate || kAddedBlocks > 0;
        if (Cell::apart) {
            multiply(p.grad_apart + (turn.start - p.grad_from) * h, h, special_, to, h, accumulate, turn, rank, size);
        }
        meet(barrier);
        if (masked) {
            const bool add = Cell::direct || feeds_old_;
            for (int64_t row = mine.begin; row < mine.end; ++row) {
                mask_row(turn, row, masked_.data(), masked_.data());
                const T* from = masked_.data() + row * h;
                T* old = p.grad + row * h;
                over_units<T>(h, [&](auto unit) { unit.store(old, add ? unit.load(old) + unit.load(from) : unit.load(from)); });
            }
            meet(barrier);
        }
    }

    // The derivative of `mix_row`; `scratch` is two rows.
    void unmix_row(const Turn& turn, const Turn* before, int64_t row, int rank, T* scratch) {
        const int64_t h = p.hidden, added = kAddedBlocks * h, at = turn.start + row;
        RowGrad<T> first = grad_of(turn, before, row, rank);
        const PairGrad<T> pair{p.second + at * Cell::blocks * h, p.grad_second + (at - p.term_from) * Cell::blocks * h,
                               p.grad_product + (at - p.grad_from) * added, *p.coefficients.at(turn.start, row)};
        if constexpr (Cell::fused) {
            Cell::backward_pair(first, pair);
        } else {
            RowGrad<T> second = first;
            second.saved = pair.saved;
            second.grad_term = pair.grad_term;
            first.grad_state = scratch;
            first.grad_apart = scratch + h;
            over_units<T>(h, [&](auto unit) {
                const auto whole = unit.load(second.grad_state);
                unit.store(first.grad_state, pair.weight * whole);
                unit.store(second.grad_state, (1 - pair.weight) * whole);
            });
            Cell::backward(first);
            Cell::backward(second);
            if (Cell::apart) over_units<T>(h, [&](auto unit) { unit.add(second.grad_apart, unit.load(first.grad_apart)); });
            over_units<T>(added, [&](auto unit) {
                unit.store(pair.grad_product, unit.load(first.grad_term) + unit.load(second.grad_term));
            });
        }
    }

    // The gradients of the biases, while the rows are at hand.
    void add_up(const Turn& turn, const Share& mine, T* sum) const {
        const int64_t h = p.hidden, width = Cell::blocks * h, own = mixes() ? kAddedBlocks * h : width;
        const T* grads = mixes() ? p.grad_product + (turn.start - p.grad_from) * own : p.grad_term + (turn.start - p.term_from) * own;
        const T* apart = Cell::apart ? p.grad_apart + (turn.start - p.grad_from) * h : nullptr;
        for (int64_t row = mine.begin; row < mine.end; ++row) {
            over_units<T>(own, [&](auto unit) { unit.add(sum, unit.load(grads + row * own)); });
            if (!Cell::apart) continue;
            over_units<T>(h, [&](auto unit) { unit.add(sum + width, unit.load(apart + row * h)); });
        }
    }

    // Before the cell's derivative: the gradients of this step's rows, taken back through the transforms.
    void begin_unstep(const Turn& turn, const Share& mine) {
        const int64_t h = p.hidden;
        if (mine.begin >= mine.end) return;
        for (int64_t row = mine.begin; row < mine.end; ++row) {
            T* work = work_.data() + row * h;
            T* grad = p.grad + row * h;
            const T* given = p.grad_states ? p.grad_states + (turn.start + row) * h : nullptr;
            const T zero = 0;
            over_units<T>(h, [&](auto unit) {
                unit.store(work, given ? unit.load(grad) + unit.load(given) : unit.load(grad));
                if (Cell::direct || feeds_old_) unit.store(grad, zero - Vector<T>{});
                if (p.memory_changes) unit.store(old_memory_.data() + row * h, zero - Vector<T>{});
            });
        }
        const Rows<T> rows{turn.start, mine.begin, mine.end, h, 0};
        for (size_t i = p.chain.size(); i-- > 0;) {
            unapply(p.chain[i], rows, work_.data(), Cell::has_memory ? p.grad_memory : nullptr, p.grad,
                    p.memory_changes ? old_memory_.data() : nullptr);
        }
    }

    // After it: what the transforms sent to the old memory joins what the cell sent there.
    void finish_memory(const Share& mine) {
        if (!p.memory_changes) return;
        for (int64_t i = mine.begin * p.hidden; i < mine.end * p.hidden; ++i) p.grad_memory[i] += old_memory_[size_t(i)];
    }
};

}  // namespace STATEWISE
