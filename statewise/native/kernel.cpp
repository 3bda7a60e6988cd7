// All that is compiled once for each instruction set: the recurrence, the products and draws around it, and two heads.
#include "crf.h"
#include "functions.h"
#include "random.h"
#include "readout.h"
#include "recurrence.h"

namespace STATEWISE {
namespace {

int64_t recurrence_forward(const sw_recurrence& call) {
    return call.dtype ? recurrence<double>(call, false) : recurrence<float>(call, false);
}

int64_t recurrence_backward(const sw_recurrence& call) {
    return call.dtype ? recurrence<double>(call, true) : recurrence<float>(call, true);
}

// With packed panels faster than the general matrix library.
template <class T>
int64_t multiply_as(const sw_product& call) {
    const T *from = static_cast<const T*>(call.from), *weight = static_cast<const T*>(call.weight);
    const T* bias = static_cast<const T*>(call.bias);
    T* to = static_cast<T*>(call.to);
    const int64_t rows = call.rows, inner = call.inner, columns = call.columns;
    if (call.turned) {
        // from is (inner, rows), weight (inner, columns): a weight's gradient.
        run_team(int(call.threads), [&](int rank, int size, Barrier&) {
            const Share mine = share(rows, rank, size);
            List<T> buffer(size_t(kTurnedChunk * Packed<T>::kPanel));
            std::fill(to + mine.begin * columns, to + mine.end * columns, T(0));
            gemm_turned(from, rows, weight, columns, inner, columns, mine.begin, mine.end, to, columns, buffer.data());
        });
        return 0;
    }
    const auto packed = call.transpose ? Packed<T>::transposed(weight, columns, inner, inner)
                                       : Packed<T>::plain(weight, inner, columns, columns);
    run_team(int(call.threads), [&](int rank, int size, Barrier&) {
        const Share mine = share(rows, rank, size);
        for (int64_t row = mine.begin; bias && row < mine.end; ++row) std::copy(bias, bias + columns, to + row * columns);
        gemm(from + mine.begin * inner, inner, mine.end - mine.begin, packed, 0, packed.panels(), to + mine.begin * columns,
             columns, bias != nullptr);
    });
    return 0;
}

int64_t multiply(const sw_product& call) { return call.dtype ? multiply_as<double>(call) : multiply_as<float>(call); }

// Index -1 is a member that has ended, and reads the blank, or 0 if there is none.
template <class T>
int64_t deal_as(const sw_deal& call) {
    const T *term = static_cast<const T*>(call.term), *blank = static_cast<const T*>(call.blank);
    const int64_t width = call.width;
    run_team(int(call.threads), [&](int rank, int size, Barrier&) {
        const Share mine = share(call.pairs, rank, size);
        const auto deal = [&](const int64_t* index, T* to) {
            for (int64_t row = mine.begin; index && row < mine.end; ++row) {
                const T* source = index[row] < 0 ? blank : term + index[row] * width;
                if (source) std::copy(source, source + width, to + row * width);
                else std::fill(to + row * width, to + (row + 1) * width, T(0));
            }
        };
        deal(call.first, static_cast<T*>(call.to_first));
        deal(call.second, static_cast<T*>(call.to_second));
    });
    return 0;
}

int64_t deal_rows(const sw_deal& call) { return call.dtype ? deal_as<double>(call) : deal_as<float>(call); }

// The derivative of deal_rows for both members at once. Without `first` its rows are those of the term as they lie. Each row
// adds up in one order always.
template <class T>
int64_t collect_as(const sw_deal& call) {
    const int64_t rows = call.rows, pairs = call.pairs, width = call.width;
    const int64_t* indices[] = {call.first, call.second};
    // For each row the rows of the gradients that belong to it, those of second members counted on; last the blank's.
    List<int64_t> begin(size_t(rows + 2), 0), entries(size_t(2 * pairs));
    const auto target = [&](int64_t at) { return size_t(at < 0 ? rows : at); };
    for (const int64_t* index : indices) {
        for (int64_t row = 0; index && row < pairs; ++row) ++begin[target(index[row]) + 1];
    }
    for (size_t row = 0; row <= size_t(rows); ++row) begin[row + 1] += begin[row];
    List<int64_t> next(begin.begin(), begin.end() - 1);
    for (int which = 0; which < 2; ++which) {
        const int64_t* index = indices[which];
        for (int64_t row = 0; index && row < pairs; ++row) {
            entries[size_t(next[target(index[row])]++)] = which * pairs + row;
        }
    }
    const T *of_first = static_cast<const T*>(call.grad_first), *of_second = static_cast<const T*>(call.grad_second);
    // The columns of a share, of one row; `begun`: added to what is there.
    const auto gather = [&](int64_t row, const Share& columns, T* to, bool begun) {
        const int64_t count = columns.end - columns.begin;
        for (int64_t at = begin[size_t(row)]; at < begin[size_t(row + 1)]; ++at) {
            const int64_t place = entries[size_t(at)];
            const T* from = place < pairs ? of_first + place * width : of_second + (place - pairs) * width;
            from += columns.begin;
            if (begun) over_units<T>(count, [&](auto unit) { unit.add(to, unit.load(from)); });
            else std::copy(from, from + count, to);
            begun = true;
        }
        if (!begun) std::fill(to, to + count, T(0));
    };
    T *to = static_cast<T*>(call.grad_term), *blank = static_cast<T*>(call.grad_blank);
    run_team(int(call.threads), [&](int rank, int size, Barrier&) {
        const Share mine = share(rows, rank, size), columns = share(width, rank, size);
        if (!call.first) std::copy(of_first + mine.begin * width, of_first + mine.end * width, to + mine.begin * width);
        for (int64_t row = mine.begin; row < mine.end; ++row) gather(row, {0, width}, to + row * width, !call.first);
        gather(rows, columns, blank + columns.begin, false);
    });
    return 0;
}

int64_t collect_rows(const sw_deal& call) { return call.dtype ? collect_as<double>(call) : collect_as<float>(call); }

int64_t fill_counted(const sw_fill& call) {
    if (call.kind < 0 || call.kind > int64_t(counter::Kind::kBeta)) return 1;
    counter::Recipe recipe{counter::Kind(call.kind), float(call.scale), float(call.shift), uint64_t(call.bound), {}};
    for (size_t i = 0; i < 6; ++i) recipe.shapes[i] = float(call.shapes[i]);
    const int64_t size = call.size, half = (size + 1) / 2;
    // A thread is worth its start from some thousands of numbers on.
    const int64_t threads = std::clamp<int64_t>(call.steps * size / 4096, 1, std::max<int64_t>(1, call.threads));
    counter::with_recipe(recipe, uint64_t(call.seed), [&](auto make) {
        run_team(int(threads), [&](int rank, int team, Barrier&) {
            const Share mine = share(call.steps, rank, team);
            for (int64_t step = mine.begin; step < mine.end; ++step) {
                counter::fill_step(call.out + step * size, size, uint64_t(step * half), recipe.scale, recipe.shift, make);
            }
        });
    });
    return 0;
}

}  // namespace

extern const sw_functions kFunctions;
const sw_functions kFunctions = {
    recurrence_forward, recurrence_backward, crf::forward,  crf::backward, crf::score,   crf::score_backward,
    readout::loss,      fill_counted,        multiply,      deal_rows,     collect_rows,
};

}  // namespace STATEWISE
