// The operators that torch sees: a recurrent layer in one direction, forward and backward, and the products around it.
//
// Tensors are float32 or float64, contiguous, on the CPU; the Python side (engine/compiled.py) sees to that.

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <vector>

#include "crf.h"
#include "memory.h"
#include "problem.h"
#include "random.h"
#include "readout.h"
#include "replicas.h"
#include "walk.h"

namespace statewise {
namespace {

template <class T>
Problem<T> problem_of(const Tensor& weight, const Tensor& apart_bias, const Tensor& extra, const Tensor& state,
                      const Tensor& memory, at::IntArrayRef batch_sizes, bool reverse, bool start_at_one,
                      const Tensor& mask, bool mask_constant) {
    Problem<T> p;
    p.hidden = weight.size(1);
    p.batch = state.size(0);
    p.turns = turns_of(batch_sizes.vec(), reverse);
    p.weight = data<T>(weight);
    p.apart_bias = data<T>(apart_bias);
    p.extra = data<T>(extra);
    p.initial_state = data<T>(state);
    p.initial_memory = data<T>(memory);
    p.start_at_one = start_at_one;
    p.mask = {data<T>(mask), p.hidden, mask_constant};
    return p;
}

// x B for many rows, B = weight^T (or weight itself): with packed panels faster than the general matrix library.
// `kept` is for what no user sees.
Tensor multiply(const Tensor& x, const Tensor& weight, bool transpose, const Tensor& bias, bool kept) {
    const int64_t rows = x.size(0), inner = x.size(1), columns = weight.size(transpose ? 0 : 1);
    Tensor out = kept ? buffer(rows, columns, x.options()) : at::empty({rows, columns}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "statewise_multiply", [&] {
        product_into(data<scalar_t>(x), rows, inner, data<scalar_t>(weight), columns, transpose, data<scalar_t>(bias),
                     data<scalar_t>(out), at::get_num_threads());
    });
    return out;
}

// The input term is `given`, or inputs weight_ih^T + bias. Tensors that a cell does not need are empty. With `second` pairs
// are mixed: both terms are only read, and lack the bias.
Tensors forward(int64_t cell, int64_t activation, const Tensor& given, const Tensor& inputs, const Tensor& weight_ih,
                const Tensor& bias, const Tensor& weight, const Tensor& apart_bias,
                const Tensor& extra, const Tensor& initial_state, const Tensor& initial_memory,
                at::IntArrayRef batch_sizes, bool reverse, bool start_at_one, const Tensor& mask, bool mask_constant,
                const Tensor& second, const Tensor& coefficients, bool coefficients_constant, bool memory_changes,
                at::IntArrayRef integers, at::ArrayRef<double> numbers, const Tensors& tensors) {
    const bool ready = given.numel() > 0, mixes = second.numel() > 0;
    const int64_t rows = ready ? given.size(0) : inputs.size(0), hidden = weight.size(1), width = weight.size(0);
    const int threads = at::get_num_threads();
    Tensor term = given;
    Tensor states = at::empty({rows, hidden}, weight.options()), state = initial_state.clone();
    Tensor none = at::empty({0}, weight.options());
    Tensor apart = none, gated = none, memories = none, cell_memories = none, memory = initial_memory.clone();
    Tensor second_saved = none;
    AT_DISPATCH_FLOATING_TYPES(weight.scalar_type(), "statewise_forward", [&] {
        with_cell<scalar_t>(cell, activation, [&](auto chosen) {
            using Cell = decltype(chosen);
            if (Cell::apart) apart = at::empty({rows, hidden}, weight.options());
            if (Cell::gated_from >= 0) gated = at::empty({rows, hidden}, weight.options());
            if (Cell::has_memory) memories = at::empty({rows, hidden}, weight.options());
            cell_memories = memory_changes ? at::empty({rows, hidden}, weight.options()) : memories;
            auto p = problem_of<scalar_t>(weight, apart_bias, extra, initial_state, initial_memory, batch_sizes, reverse,
                                          start_at_one, mask, mask_constant);
            p.chain = chain_of<scalar_t>(integers, numbers, tensors, hidden, data<scalar_t>);
            p.memory_changes = memory_changes;
            if (mixes) {
                term = buffer(rows, width, weight.options());
                second_saved = buffer(rows, width, weight.options());
                p.first_given = data<scalar_t>(given);
                p.second_given = data<scalar_t>(second);
                p.added_bias = data<scalar_t>(bias);
                p.coefficients = {data<scalar_t>(coefficients), 1, coefficients_constant};
                p.second = data<scalar_t>(second_saved);
            } else if (!ready && takes_inputs(p, Cell::blocks, inputs.size(1), threads)) {
                term = buffer(rows, width, weight.options());
                p.input = inputs.size(1);
                p.inputs = data<scalar_t>(inputs);
                p.input_weight = data<scalar_t>(weight_ih);
                p.input_bias = data<scalar_t>(bias);
            } else if (!ready) {
                term = multiply(inputs, weight_ih, true, bias, true);
            }
            p.term = data<scalar_t>(term);
            p.apart = data<scalar_t>(apart);
            p.gated = data<scalar_t>(gated);
            p.states = data<scalar_t>(states);
            p.memories = data<scalar_t>(memories);
            p.cell_memories = data<scalar_t>(cell_memories);
            p.state = data<scalar_t>(state);
            p.memory = data<scalar_t>(memory);
            Walk<scalar_t, Cell>(p, threads).forward();
        });
    });
    return {term, states, state, memory, memories, cell_memories, apart, gated, second_saved};
}

// `term`, the product kept apart (made[5]) and what was saved of second members (made[7]) are changed in place into their
// gradients. With weight_ih the gradient of the inputs is wanted too.
Tensors backward(int64_t cell, int64_t activation, const Tensor& term, const Tensor& weight_ih, const Tensor& weight,
                 const Tensor& extra,
                 const Tensor& initial_state, const Tensor& initial_memory, at::IntArrayRef batch_sizes, bool reverse,
                 const Tensor& mask, bool mask_constant, const Tensor& coefficients, bool coefficients_constant,
                 bool memory_changes, at::IntArrayRef integers, at::ArrayRef<double> numbers, const Tensors& tensors, const Tensors& made, const Tensor& grad_states,
                 const Tensor& grad_final, const Tensor& grad_final_memory) {
    const int64_t hidden = weight.size(1);
    Tensor grad = grad_final.clone(), grad_memory = grad_final_memory.clone(), grad_extra = at::zeros_like(extra);
    Tensor grad_inputs = grad_extra.new_empty({0}), grad_product = grad_inputs, grad_bias;
    AT_DISPATCH_FLOATING_TYPES(term.scalar_type(), "statewise_backward", [&] {
        with_cell<scalar_t>(cell, activation, [&](auto chosen) {
            using Cell = decltype(chosen);
            auto p = problem_of<scalar_t>(weight, Tensor(grad_extra.new_empty({0})), extra, initial_state,
                                          initial_memory, batch_sizes, reverse, false, mask, mask_constant);
            p.chain = chain_of<scalar_t>(integers, numbers, tensors, hidden, data<scalar_t>);
            p.memory_changes = memory_changes;
            p.term = data<scalar_t>(term);
            p.states = data<scalar_t>(made[0]);
            p.memories = data<scalar_t>(made[3]);
            p.cell_memories = data<scalar_t>(made[4]);
            p.apart = data<scalar_t>(made[5]);
            p.gated = data<scalar_t>(made[6]);
            if (coefficients.numel()) {
                grad_product = buffer(term.size(0), (Cell::blocks - Cell::apart) * hidden, term.options());
                p.coefficients = {data<scalar_t>(coefficients), 1, coefficients_constant};
                p.second = data<scalar_t>(made[7]);
                p.grad_product = data<scalar_t>(grad_product);
            }
            p.grad_states = data<scalar_t>(grad_states);
            p.grad = data<scalar_t>(grad);
            p.grad_memory = data<scalar_t>(grad_memory);
            const int threads = at::get_num_threads();
            const bool wanted = weight_ih.numel() > 0;
            const bool here = wanted && takes_inputs(p, Cell::blocks, weight_ih.size(1), threads);
            if (here) {
                grad_inputs = at::empty({term.size(0), weight_ih.size(1)}, term.options());
                p.input = weight_ih.size(1);
                p.input_weight = data<scalar_t>(weight_ih);
                p.grad_inputs = data<scalar_t>(grad_inputs);
            }
            std::vector<std::vector<scalar_t>> extra_sums(size_t(std::max(threads, 1))), bias_sums(extra_sums.size());
            p.extra_sums = extra_sums.data();
            p.bias_sums = bias_sums.data();
            Walk<scalar_t, Cell>(p, threads).backward();
            if (wanted && !here) grad_inputs = multiply(term, weight_ih, false, grad_extra.new_empty({0}), false);
            grad_bias = at::zeros({(Cell::blocks + Cell::apart) * hidden}, term.options());
            total_of(extra_sums, data<scalar_t>(grad_extra));
            total_of(bias_sums, data<scalar_t>(grad_bias));
        });
    });
    return {grad_inputs, grad, grad_memory, grad_extra, grad_bias, grad_product};
}

// sum_i grad[first_i : first_i + rows of values_i]^T values_i for values of one width: a weight's gradient.
Tensor weight_gradient(const Tensor& grad, const Tensors& values, at::IntArrayRef firsts) {
    const int64_t rows = grad.size(1), columns = values[0].size(1);
    Tensor out = at::empty({rows, columns}, grad.options());
    AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "statewise_weight_gradient", [&] {
        scalar_t* to = data<scalar_t>(out);
        run_team(at::get_num_threads(), [&](int rank, int size, Barrier&) {
            const Share mine = share(rows, rank, size);
            std::vector<scalar_t> buffer(size_t(kTurnedChunk * Packed<scalar_t>::kPanel));
            std::fill(to + mine.begin * columns, to + mine.end * columns, scalar_t(0));
            for (size_t i = 0; i < values.size(); ++i) {
                const scalar_t* from = grad.data_ptr<scalar_t>() + firsts[i] * grad.stride(0);
                gemm_turned(from, grad.stride(0), data<scalar_t>(values[i]), columns, values[i].size(0), columns,
                            mine.begin, mine.end, to, columns, buffer.data());
            }
        });
    });
    return out;
}

// The rows of a term that pairs of sequences read: index -1 is a member that has ended, and reads the blank, or 0 if that
// is empty.
Tensor deal(const Tensor& term, const Tensor& index, const Tensor& blank) {
    const int64_t rows = index.size(0), width = term.size(1);
    Tensor out = buffer(rows, width, term.options());
    AT_DISPATCH_FLOATING_TYPES(term.scalar_type(), "statewise_deal", [&] {
        const scalar_t* from = data<scalar_t>(term);
        const scalar_t* none = data<scalar_t>(blank);
        const int64_t* where = index.data_ptr<int64_t>();
        scalar_t* to = data<scalar_t>(out);
        run_team(at::get_num_threads(), [&](int rank, int size, Barrier&) {
            const Share mine = share(rows, rank, size);
            for (int64_t row = mine.begin; row < mine.end; ++row) {
                const scalar_t* source = where[row] < 0 ? none : from + where[row] * width;
                if (source) std::copy(source, source + width, to + row * width);
                else std::fill(to + row * width, to + (row + 1) * width, scalar_t(0));
            }
        });
    });
    return out;
}

// The derivative of `deal` for both members at once: what every one of `rows` rows, and the blank, get back. With an empty
// `first` its rows are those of the term as they lie, and its gradient is changed in place into the sum. Each row adds up
// in one order always.
Tensors collect(const Tensor& grad_first, const Tensor& first, const Tensor& grad_second, const Tensor& second,
                int64_t rows) {
    const int64_t width = grad_second.size(1), pairs = grad_second.size(0);
    const bool as_they_lie = !first.numel();
    Tensor out = as_they_lie ? grad_first : buffer(rows, width, grad_second.options());
    Tensor blank = at::zeros({width}, grad_second.options());
    const int64_t* indices[] = {as_they_lie ? nullptr : first.data_ptr<int64_t>(), second.data_ptr<int64_t>()};
    // For each row the rows of the gradients that belong to it, those of second members counted on; last the blank's.
    std::vector<int64_t> begin(size_t(rows + 2), 0), entries(size_t(2 * pairs));
    const auto target = [&](int64_t at) { return size_t(at < 0 ? rows : at); };
    for (const int64_t* index : indices) {
        for (int64_t row = 0; index && row < pairs; ++row) ++begin[target(index[row]) + 1];
    }
    for (size_t row = 0; row <= size_t(rows); ++row) begin[row + 1] += begin[row];
    std::vector<int64_t> next(begin.begin(), begin.end() - 1);
    for (const int64_t* index : indices) {
        const int64_t skip = index == indices[0] ? 0 : pairs;
        for (int64_t row = 0; index && row < pairs; ++row) entries[size_t(next[target(index[row])]++)] = skip + row;
    }
    AT_DISPATCH_FLOATING_TYPES(grad_second.scalar_type(), "statewise_collect", [&] {
        const scalar_t* of_first = data<scalar_t>(grad_first);
        const scalar_t* of_second = data<scalar_t>(grad_second);
        // The columns of a share, of one row.
        const auto gather = [&](int64_t row, const Share& columns, scalar_t* to, bool begun) {
            for (int64_t at = begin[size_t(row)]; at < begin[size_t(row + 1)]; ++at) {
                const int64_t place = entries[size_t(at)];
                const scalar_t* from = place < pairs ? of_first + place * width : of_second + (place - pairs) * width;
                from += columns.begin;
                if (begun) over_units<scalar_t>(columns.end - columns.begin, [&](auto unit) { unit.add(to, unit.load(from)); });
                else std::copy(from, from + columns.end - columns.begin, to);
                begun = true;
            }
            if (!begun) std::fill(to, to + columns.end - columns.begin, scalar_t(0));
        };
        scalar_t* to = data<scalar_t>(out);
        run_team(at::get_num_threads(), [&](int rank, int size, Barrier&) {
            const Share mine = share(rows, rank, size), columns = share(width, rank, size);
            for (int64_t row = mine.begin; row < mine.end; ++row) gather(row, {0, width}, to + row * width, as_they_lie);
            gather(rows, columns, data<scalar_t>(blank) + columns.begin, true);
        });
    });
    return {out, blank};
}

// The numbers of native/random.h, step by step, on several threads.
void fill_counted(const Tensor& out, int64_t seed, int64_t kind, double scale, double shift, int64_t bound,
                  at::ArrayRef<double> shapes) {
    TORCH_CHECK(kind >= 0 && kind <= int64_t(counter::Kind::kBeta), "statewise: the kernel knows no law ", kind);
    counter::Recipe recipe{counter::Kind(kind), float(scale), float(shift), uint64_t(bound), {}};
    for (size_t i = 0; i < std::min<size_t>(6, shapes.size()); ++i) recipe.shapes[i] = float(shapes[i]);
    const int64_t steps = out.size(0), size = steps ? out.numel() / steps : 0, half = (size + 1) / 2;
    float* to = out.data_ptr<float>();
    const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, size));
    counter::with_recipe(recipe, uint64_t(seed), [&](auto make) {
        at::parallel_for(0, steps, grain, [&](int64_t begin, int64_t end) {
            for (int64_t step = begin; step < end; ++step) {
                counter::fill_step(to + step * size, size, uint64_t(step * half), recipe.scale, recipe.shift, make);
            }
        });
    });
}

}  // namespace

TORCH_LIBRARY(statewise_native, library) {
    library.def(
        "forward(int cell, int activation, Tensor(a!) given, Tensor inputs, Tensor weight_ih, Tensor bias, "
        "Tensor weight, Tensor apart_bias, Tensor extra, "
        "Tensor initial_state, Tensor initial_memory, int[] batch_sizes, bool reverse, bool start_at_one, Tensor mask, "
        "bool mask_constant, Tensor second, Tensor coefficients, bool coefficients_constant, bool memory_changes, "
        "int[] integers, float[] numbers, Tensor[] tensors) -> Tensor[]");
    library.def(
        "backward(int cell, int activation, Tensor(a!) term, Tensor weight_ih, Tensor weight, Tensor extra, Tensor initial_state, "
        "Tensor initial_memory, int[] batch_sizes, bool reverse, Tensor mask, bool mask_constant, Tensor coefficients, "
        "bool coefficients_constant, bool memory_changes, int[] integers, float[] numbers, Tensor[] tensors, Tensor(b!)[] made, Tensor grad_states, Tensor grad_final, "
        "Tensor grad_final_memory) -> Tensor[]");
    library.def("fill_counted(Tensor(a!) out, int seed, int kind, float scale, float shift, int bound, float[] shapes) -> ()");
    library.def("multiply(Tensor x, Tensor weight, bool transpose, Tensor bias, bool kept) -> Tensor");
    library.def("deal(Tensor term, Tensor index, Tensor blank) -> Tensor");
    library.def("collect(Tensor(a!) grad_first, Tensor first, Tensor grad_second, Tensor second, int rows) -> Tensor[]");
    library.def("weight_gradient(Tensor grad, Tensor[] values, int[] firsts) -> Tensor");
}

TORCH_LIBRARY_IMPL(statewise_native, CPU, library) {
    library.impl("forward", forward);
    library.impl("backward", backward);
    library.impl("fill_counted", fill_counted);
    library.impl("multiply", multiply);
    library.impl("deal", deal);
    library.impl("collect", collect);
    library.impl("weight_gradient", weight_gradient);
}

}  // namespace statewise
