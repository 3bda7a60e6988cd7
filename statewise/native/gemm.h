// A product C (+)= A B for few rows of A and a B that is packed once and used at every time step.
//
// B is cut into panels of two vectors of columns, each stored k by k, so the kernel reads it as one stream; A is read
// where it lies. A block of up to kRowsMax rows by one panel of C lives in registers for the whole of K, so C is
// touched once; cutting K into pieces was measured to be slower. The kernels are written in the vector extensions that
// GCC and Clang share, so one source serves AVX-512, AVX2, SSE and NEON.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "pointwise.h"

namespace STATEWISE {

constexpr int64_t kAlign = 64;
constexpr int kPanelVectors = 2;
// Two vectors of B and one broadcast of A stay in registers beside the block of C.
constexpr int kRowsMax = (kRegisters - 4) / kPanelVectors > 12 ? 12 : (kRegisters - 4) / kPanelVectors;
constexpr int64_t kChunkBlocks = 8;
// So many columns behind the last whole panel, at most, would leave most lanes of a vector idle: there the lanes run along
// the other dimensions. 0: no vector is that wide.
template <class T>
constexpr int64_t kFew = Vec<T>::width >= 8 ? 4 : 0;

namespace detail {

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define STATEWISE_HAS_SHUFFLE 1
#endif
#endif

#if defined(STATEWISE_HAS_SHUFFLE)
// a0 b0 a1 b1 ...: the first halves of both go to `low`, the second halves to `high`.
template <class V, int... Lane>
inline void interleave(V a, V b, V& low, V& high, std::integer_sequence<int, Lane...>) {
    constexpr int kWidth = int(sizeof...(Lane));
    low = __builtin_shufflevector(a, b, (Lane / 2 + (Lane % 2) * kWidth)...);
    high = __builtin_shufflevector(a, b, (kWidth / 2 + Lane / 2 + (Lane % 2) * kWidth)...);
}

// A square tile, transposed in registers: interleaving row i with row i + width / 2, log2(width) times over.
template <class T>
inline void transpose_square(const T* from, int64_t ldf, T* to, int64_t ldt) {
    using Lanes = Vec<T>;
    constexpr int kWidth = int(Lanes::width);
    typename Lanes::type rows[kWidth], mixed[kWidth];
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) rows[i] = Lanes::load(from + i * ldf);
#pragma GCC unroll 4
    for (int round = 1; round < kWidth; round *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < kWidth / 2; ++i)
            interleave(rows[i], rows[i + kWidth / 2], mixed[2 * i], mixed[2 * i + 1],
                       std::make_integer_sequence<int, kWidth>());
#pragma GCC unroll 16
        for (int i = 0; i < kWidth; ++i) rows[i] = mixed[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) Lanes::store(to + i * ldt, rows[i]);
}
#endif

// to[k, j] = from[j, k] for j < rows, and 0 for the rest of a vector; at most a vector of each.
template <class T>
inline void transpose_tile(const T* from, int64_t ldf, int64_t rows, int64_t steps, T* to, int64_t ldt) {
    constexpr int64_t kWidth = Vec<T>::width;
#if defined(STATEWISE_HAS_SHUFFLE)
    if (rows == kWidth && steps == kWidth) return transpose_square(from, ldf, to, ldt);
#endif
    for (int64_t k = 0; k < steps; ++k)
        for (int64_t j = 0; j < kWidth; ++j) to[k * ldt + j] = j < rows ? from[j * ldf + k] : T(0);
}

}  // namespace detail

// A K x N matrix in panels of kPanel columns; the last panel is padded with zeros, or, if its columns are few, it is turned:
// kFew rows of K, those behind the columns not read.
template <class T>
class Packed {
public:
    static constexpr int64_t kPanel = kPanelVectors * kVectorBytes / int64_t(sizeof(T));

    static int64_t panels_for(int64_t n) { return (n + kPanel - 1) / kPanel; }
    // Elements of storage that a K x N matrix takes.
    static int64_t size_for(int64_t k, int64_t n) { return panels_for(n) * kPanel * k; }

    Packed() = default;
    // Unfilled, on its own memory.
    Packed(int64_t k, int64_t n) : k_(k), n_(n) {
        const size_t bytes = std::max<size_t>(size_t(size_for(k, n)) * sizeof(T), 1);
        own_.reset(static_cast<T*>(::operator new(bytes, std::align_val_t(kAlign))));
        data_ = own_.get();
    }

    // B = U^T for row-major U of shape (n, k): the forward product h U^T.
    static Packed transposed(const T* u, int64_t n, int64_t k, int64_t ldu) {
        Packed packed(k, n);
        packed.pack_transposed(u, ldu, 0, packed.panels());
        return packed;
    }
    // B as it is, row-major of shape (k, n): the backward product dG U.
    static Packed plain(const T* b, int64_t k, int64_t n, int64_t ldb) {
        Packed packed(k, n);
        packed.pack_plain(b, ldb, 0, packed.panels());
        return packed;
    }

    // The fillers work panel by panel, so the threads of a team can share the work.
    void pack_transposed(const T* u, int64_t ldu, int64_t panel_begin, int64_t panel_end) {
        constexpr int64_t kTile = Vec<T>::width;
        for (int64_t p = panel_begin; p < panel_end; ++p) {
            T* to = data_ + p * kPanel * k_;
            const T* from = u + p * kPanel * ldu;
            const int64_t width = columns(p);
            if (few(p)) {
                for (int64_t j = 0; j < width; ++j) std::copy(from + j * ldu, from + j * ldu + k_, to + j * k_);
                continue;
            }
            for (int64_t k = 0; k < k_; k += kTile) {
                const int64_t steps = std::min(kTile, k_ - k);
                for (int64_t j = 0; j < kPanel; j += kTile) {
                    const int64_t rows = std::max<int64_t>(0, std::min(kTile, width - j));
                    detail::transpose_tile(from + j * ldu + k, ldu, rows, steps, to + k * kPanel + j, kPanel);
                }
            }
        }
    }
    void pack_plain(const T* b, int64_t ldb, int64_t panel_begin, int64_t panel_end) {
        for (int64_t p = panel_begin; p < panel_end; ++p) {
            T* to = data_ + p * kPanel * k_;
            const int64_t width = columns(p);
            if (few(p)) {
                for (int64_t k = 0; k < k_; ++k) {
                    for (int64_t j = 0; j < width; ++j) to[j * k_ + k] = b[k * ldb + p * kPanel + j];
                }
                continue;
            }
            for (int64_t k = 0; k < k_; ++k, to += kPanel) {
                std::memcpy(to, b + k * ldb + p * kPanel, size_t(width) * sizeof(T));
                std::fill(to + width, to + kPanel, T(0));
            }
        }
    }

    int64_t k() const { return k_; }
    int64_t n() const { return n_; }
    int64_t panels() const { return panels_for(n_); }
    // How many columns of panel p are not padding.
    int64_t columns(int64_t p) const { return std::min(kPanel, n_ - p * kPanel); }
    bool few(int64_t p) const { return columns(p) <= kFew<T>; }
    const T* panel(int64_t p) const { return data_ + p * kPanel * k_; }

private:
    struct Release {
        void operator()(T* memory) const { ::operator delete(memory, std::align_val_t(kAlign)); }
    };
    int64_t k_ = 0, n_ = 0;
    std::unique_ptr<T, Release> own_;
    T* data_ = nullptr;
};

namespace detail {

template <class T>
struct Block {
    const T* a;
    int64_t lda, k;
    const T* b;
    T* c;
    int64_t ldc, valid;
    bool accumulate;
};

// Rows x valid of C (+)= A B, for the first NV vectors of a panel; valid <= NV * width. With Turned it is A^T B: row i of
// the product comes from column i of A.
template <class T, int Bytes, int NV, bool Turned, int Rows>
__attribute__((noinline)) void multiply(const Block<T>& block) {
    using Lanes = Vec<T, Bytes>;
    using V = typename Lanes::type;
    constexpr int64_t kWidth = Lanes::width;
    const T* a = block.a;
    const T* b = block.b;
    const int64_t lda = block.lda, k = block.k;
    V sum[Rows][NV] = {};
    for (int64_t step = 0; step < k; ++step, b += Packed<T>::kPanel) {
        V right[NV];
#pragma GCC unroll 4
        for (int j = 0; j < NV; ++j) right[j] = Lanes::load(b + j * kWidth);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) {
            const V left = Lanes::broadcast(Turned ? a[step * lda + i] : a[i * lda + step]);
#pragma GCC unroll 4
            for (int j = 0; j < NV; ++j) sum[i][j] += left * right[j];
        }
    }

    T* c = block.c;
    const bool accumulate = block.accumulate;
    if (block.valid == NV * kWidth) {
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
            for (int j = 0; j < NV; ++j) {
                T* to = c + i * block.ldc + j * kWidth;
                Lanes::store(to, accumulate ? Lanes::load(to) + sum[i][j] : sum[i][j]);
            }
        }
        return;
    }
    T whole[Rows][NV * kWidth];
    std::memcpy(whole, sum, sizeof(sum));
    for (int i = 0; i < Rows; ++i) {
        T* to = c + i * block.ldc;
        for (int64_t j = 0; j < block.valid; ++j) to[j] = accumulate ? to[j] + whole[i][j] : whole[i][j];
    }
}

template <class T, int Bytes, int NV, bool Turned, int Rows = kRowsMax>
inline void multiply_rows(int rows, const Block<T>& block) {
    if constexpr (Rows > 0) {
        if (rows == Rows) return multiply<T, Bytes, NV, Turned, Rows>(block);
        multiply_rows<T, Bytes, NV, Turned, Rows - 1>(rows, block);
    }
}

// One block of rows against one panel, in the narrowest vectors that cover the columns in use.
template <class T, bool Turned = false>
inline void multiply_panel(int rows, Block<T> block) {
    constexpr int kHalfBytes = kVectorBytes > 16 ? kVectorBytes / 2 : kVectorBytes;
    constexpr int64_t kWhole = Vec<T>::width, kHalf = Vec<T, kHalfBytes>::width;
    const int64_t columns = block.valid;
    if (columns > kWhole + kHalf || columns == 2 * kWhole) return multiply_rows<T, kVectorBytes, 2, Turned>(rows, block);
    if (columns <= kHalf) return multiply_rows<T, kHalfBytes, 1, Turned>(rows, block);
    block.valid = std::min(columns, kWhole);
    multiply_rows<T, kVectorBytes, 1, Turned>(rows, block);
    if (columns > kWhole) {
        block.valid = columns - kWhole;
        block.b += kWhole;
        block.c += kWhole;
        multiply_rows<T, kHalfBytes, 1, Turned>(rows, block);
    }
}

template <class T>
inline T sum_of(const typename Vec<T>::type& value) {
    T lanes[Vec<T>::width];
    Vec<T>::store(lanes, value);
    for (int64_t half = Vec<T>::width / 2; half > 0; half /= 2) {
        for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
}

// Rows x columns of C (+)= A B for few columns, which lie turned in B; the lanes run along K.
template <class T, int Rows>
__attribute__((noinline)) void multiply_few_rows(const Block<T>& block) {
    using Lanes = Vec<T>;
    using V = typename Lanes::type;
    constexpr int kColumns = 4;
    const int64_t k = block.k, lda = block.lda;
    // Of columns that are not there the last is taken again.
    const T* b[kColumns];
    for (int64_t j = 0; j < kColumns; ++j) b[j] = block.b + std::min(j, block.valid - 1) * k;
    V sum[Rows][kColumns] = {};
    const auto add = [&](auto load, int64_t step) {
        V right[kColumns];
#pragma GCC unroll 4
        for (int j = 0; j < kColumns; ++j) right[j] = load(b[j] + step);
#pragma GCC unroll 4
        for (int i = 0; i < Rows; ++i) {
            const V left = load(block.a + i * lda + step);
#pragma GCC unroll 4
            for (int j = 0; j < kColumns; ++j) sum[i][j] += left * right[j];
        }
    };
    int64_t step = 0;
    for (; step + Lanes::width <= k; step += Lanes::width) add([](const T* from) { return Lanes::load(from); }, step);
    if (step < k) add([rest = k - step](const T* from) { return Lanes::load(from, rest); }, step);
    for (int64_t i = 0; i < Rows; ++i) {
        for (int64_t j = 0; j < block.valid; ++j) {
            T& to = block.c[i * block.ldc + j];
            to = sum_of<T>(sum[i][j]) + (block.accumulate ? to : T(0));
        }
    }
}

template <class T>
inline void multiply_few(int64_t rows, Block<T> block) {
    constexpr int kRows = kRegisters >= 32 ? 4 : 2;
    for (; rows >= kRows; rows -= kRows, block.a += kRows * block.lda, block.c += kRows * block.ldc) {
        multiply_few_rows<T, kRows>(block);
    }
    for (; rows > 0; --rows, block.a += block.lda, block.c += block.ldc) multiply_few_rows<T, 1>(block);
}

// The same of A^T B; the lanes run along the rows of C, which are the columns of A. Entry (k, j) of B is at
// b[k * b_step + j * b_column].
template <class T, int Vectors>
__attribute__((noinline)) void multiply_few_columns_of(int64_t rows, const Block<T>& block, int64_t b_step,
                                                       int64_t b_column) {
    using Lanes = Vec<T>;
    using V = typename Lanes::type;
    constexpr int kColumns = 4;
    V sum[Vectors][kColumns] = {};
    const int64_t rest = rows - (Vectors - 1) * Lanes::width;
    const auto add = [&](auto load_last) {
        for (int64_t step = 0; step < block.k; ++step) {
            const T *a = block.a + step * block.lda, *b = block.b + step * b_step;
            V left[Vectors];
#pragma GCC unroll 4
            for (int v = 0; v + 1 < Vectors; ++v) left[v] = Lanes::load(a + v * Lanes::width);
            left[Vectors - 1] = load_last(a + (Vectors - 1) * Lanes::width);
#pragma GCC unroll 4
            for (int j = 0; j < kColumns; ++j) {
                const V right = Lanes::broadcast(b[std::min<int64_t>(j, block.valid - 1) * b_column]);
#pragma GCC unroll 4
                for (int v = 0; v < Vectors; ++v) sum[v][j] += left[v] * right;
            }
        }
    };
    if (rest == Lanes::width) add([](const T* from) { return Lanes::load(from); });
    else add([rest](const T* from) { return Lanes::load(from, rest); });
    for (int v = 0; v < Vectors; ++v) {
        for (int64_t j = 0; j < block.valid; ++j) {
            T lanes[Lanes::width];
            Lanes::store(lanes, sum[v][j]);
            for (int64_t lane = 0; lane < std::min(Lanes::width, rows - v * Lanes::width); ++lane) {
                T& to = block.c[(v * Lanes::width + lane) * block.ldc + j];
                to = lanes[lane] + (block.accumulate ? to : T(0));
            }
        }
    }
}

template <class T>
inline void multiply_few_turned(int64_t rows, Block<T> block, int64_t b_step, int64_t b_column) {
    constexpr int kVectors = kRegisters >= 32 ? 4 : 2;
    constexpr int64_t kRows = kVectors * Vec<T>::width;
    for (; rows >= kRows; rows -= kRows, block.a += kRows, block.c += kRows * block.ldc) {
        multiply_few_columns_of<T, kVectors>(kRows, block, b_step, b_column);
    }
    for (; rows > 0; rows -= Vec<T>::width, block.a += Vec<T>::width, block.c += Vec<T>::width * block.ldc) {
        multiply_few_columns_of<T, 1>(std::min(rows, Vec<T>::width), block, b_step, b_column);
    }
}

}  // namespace detail

// C[:, columns of panels panel_begin .. panel_end) (+)= A B; A is m x B.k() and C is m x B.n(), both row-major.
// Columns of other panels and padding are never written; threads may share one C by taking disjoint panels.
template <class T>
inline void gemm(const T* a, int64_t lda, int64_t m, const Packed<T>& b, int64_t panel_begin, int64_t panel_end, T* c,
                 int64_t ldc, bool accumulate) {
    // Blocks of nearly equal height: a last block of one row would leave the arithmetic units idle.
    const int64_t blocks = (m + kRowsMax - 1) / kRowsMax;
    const auto first_row = [&](int64_t block) { return m * block / blocks; };
    // Every panel meets a chunk of A before the next chunk is read, so that the chunk stays in the cache.
    for (int64_t chunk = 0; chunk < blocks; chunk += kChunkBlocks) {
        const int64_t chunk_end = std::min(chunk + kChunkBlocks, blocks);
        for (int64_t p = panel_begin; p < panel_end; ++p) {
            const int64_t column = p * Packed<T>::kPanel;
            if (b.few(p)) {
                const int64_t row = first_row(chunk);
                detail::multiply_few<T>(first_row(chunk_end) - row, {a + row * lda, lda, b.k(), b.panel(p),
                                                                     c + row * ldc + column, ldc, b.columns(p), accumulate});
                continue;
            }
            for (int64_t i = chunk; i < chunk_end; ++i) {
                const int64_t row = first_row(i);
                detail::multiply_panel<T>(int(first_row(i + 1) - row),
                                          {a + row * lda, lda, b.k(), b.panel(p), c + row * ldc + column, ldc,
                                           b.columns(p), accumulate});
            }
        }
    }
}

// C[rows row_begin .. row_end) += (A^T B), the sum over many rows k of A (k x m) and B (k x n): a weight's gradient.
//
// A chunk of B is packed panel by panel into `buffer` (kTurnedChunk * kPanel elements), which stays in the cache while all
// rows of C meet it.
constexpr int64_t kTurnedChunk = 256;

template <class T>
inline void gemm_turned(const T* a, int64_t lda, const T* b, int64_t ldb, int64_t k, int64_t n, int64_t row_begin,
                        int64_t row_end, T* c, int64_t ldc, T* buffer) {
    constexpr int64_t kPanel = Packed<T>::kPanel;
    const int64_t rows = row_end - row_begin, blocks = (rows + kRowsMax - 1) / kRowsMax;
    const int64_t chunks = (k + kTurnedChunk - 1) / kTurnedChunk;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        const int64_t from = k * chunk / chunks, depth = k * (chunk + 1) / chunks - from;
        for (int64_t column = 0; column < n; column += kPanel) {
            const int64_t width = std::min(kPanel, n - column);
            if (width <= kFew<T>) {
                const T* few = b + from * ldb + column;
                detail::multiply_few_turned<T>(
                    rows, {a + from * lda + row_begin, lda, depth, few, c + row_begin * ldc + column, ldc, width, true}, ldb, 1);
                continue;
            }
            for (int64_t step = 0; step < depth; ++step) {
                T* to = buffer + step * kPanel;
                const T* row = b + (from + step) * ldb + column;
                int64_t j = 0;
                for (; j + Vec<T>::width <= width; j += Vec<T>::width) Vec<T>::store(to + j, Vec<T>::load(row + j));
                for (; j < kPanel; j += Vec<T>::width) {
                    Vec<T>::store(to + j, j < width ? Vec<T>::load(row + j, width - j) : typename Vec<T>::type{});
                }
            }
            for (int64_t i = 0; i < blocks; ++i) {
                const int64_t row = row_begin + rows * i / blocks, next = row_begin + rows * (i + 1) / blocks;
                detail::multiply_panel<T, true>(int(next - row), {a + from * lda + row, lda, depth, buffer,
                                                                  c + row * ldc + column, ldc, width, true});
            }
        }
    }
}

}  // namespace STATEWISE
