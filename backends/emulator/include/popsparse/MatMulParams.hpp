// Sizes of sparse products.
#ifndef SNNC_POPSPARSE_MAT_MUL_PARAMS_HPP
#define SNNC_POPSPARSE_MAT_MUL_PARAMS_HPP
#include <ostream>
#include <tuple>
#include <popsparse/SparsityParams.hpp>
namespace popsparse {
namespace dynamic {
/// A sparse [groups, m, k] times a dense [groups, k, n], with memory for the given number of nonzero values.
class MatMulParams {
public:
  static MatMulParams createWithNzRatio(const SparsityParams &sparsity, double nzRatio, std::size_t groups, std::size_t m, std::size_t k,
                                        std::size_t n);
  static MatMulParams createWithNumNonZeroValues(const SparsityParams &sparsity, std::size_t values, std::size_t groups, std::size_t m,
                                                 std::size_t k, std::size_t n);
  const SparsityParams &getSparsityParams() const { return sparsity_; }
  std::size_t getNumGroups() const { return groups_; }
  std::size_t getM() const { return m_; }
  std::size_t getK() const { return k_; }
  std::size_t getN() const { return n_; }
  double getNzRatio() const { return double(values_) / double(groups_ * m_ * k_); }
  std::size_t getNumNonZeroValues() const { return values_; }
  friend bool operator<(const MatMulParams &a, const MatMulParams &b) { return a.all() < b.all(); }
  friend bool operator==(const MatMulParams &a, const MatMulParams &b) { return a.all() == b.all(); }
  friend bool operator!=(const MatMulParams &a, const MatMulParams &b) { return !(a == b); }
  friend std::ostream &operator<<(std::ostream &os, const MatMulParams &p) {
    return os << "{sparsity: " << p.sparsity_ << ", values: " << p.values_ << ", groups: " << p.groups_ << ", m: " << p.m_
              << ", k: " << p.k_ << ", n: " << p.n_ << "}";
  }

private:
  std::tuple<std::array<std::size_t, 2>, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t> all() const {
    return {sparsity_.blockDimensions, values_, groups_, m_, k_, n_};
  }
  SparsityParams sparsity_;
  std::size_t values_ = 0, groups_ = 1, m_ = 0, k_ = 0, n_ = 0;
};
} // namespace dynamic
namespace static_ {
/// A sparse [m, k] times a dense [k, n], or a dense [n, k] times a sparse [k, m].
class MatMulParams {
public:
  static MatMulParams createForSparseDense(std::size_t groups, std::size_t m, std::size_t k, std::size_t n) {
    return {groups, m, k, n, false};
  }
  static MatMulParams createForDenseSparse(std::size_t groups, std::size_t n, std::size_t k, std::size_t m) {
    return {groups, m, k, n, true};
  }
  std::size_t getNumGroups() const { return groups_; }
  std::size_t getM() const { return m_; }
  std::size_t getK() const { return k_; }
  std::size_t getN() const { return n_; }
  bool isTransposed() const { return transposed_; }
  friend bool operator<(const MatMulParams &a, const MatMulParams &b) { return a.all() < b.all(); }
  friend bool operator==(const MatMulParams &a, const MatMulParams &b) { return a.all() == b.all(); }
  friend bool operator!=(const MatMulParams &a, const MatMulParams &b) { return !(a == b); }
  friend std::ostream &operator<<(std::ostream &os, const MatMulParams &p) {
    return os << "{groups: " << p.groups_ << ", m: " << p.m_ << ", k: " << p.k_ << ", n: " << p.n_ << ", transposed: " << p.transposed_
              << "}";
  }

private:
  MatMulParams(std::size_t groups, std::size_t m, std::size_t k, std::size_t n, bool transposed)
      : groups_(groups), m_(m), k_(k), n_(n), transposed_(transposed) {}
  std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, bool> all() const { return {groups_, m_, k_, n_, transposed_}; }
  std::size_t groups_, m_, k_, n_;
  bool transposed_;
};
} // namespace static_
} // namespace popsparse
#endif
