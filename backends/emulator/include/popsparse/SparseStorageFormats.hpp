// Sparse matrices on the host. Indices are those of elements; for a block, those of its first element.
#ifndef SNNC_POPSPARSE_SPARSE_STORAGE_FORMATS_HPP
#define SNNC_POPSPARSE_SPARSE_STORAGE_FORMATS_HPP

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace popsparse {

/// The block size of a matrix; the values of a block are contiguous, row by row.
struct Block {
  explicit Block(const std::array<std::size_t, 2> &dimensions = {1, 1}) : blockDimensions(dimensions) {}
  std::size_t getNumRowsInBlock() const { return blockDimensions[0]; }
  std::size_t getNumColumnsInBlock() const { return blockDimensions[1]; }
  std::size_t getBlockSize() const { return blockDimensions[0] * blockDimensions[1]; }
  std::array<std::size_t, 2> getBlockDimensions() const { return blockDimensions; }

protected:
  std::array<std::size_t, 2> blockDimensions;
};

/// Coordinates: a row and a column for each block.
template <class T> struct COOMatrix : Block {
  std::size_t numRows = 0, numColumns = 0;
  std::vector<T> nzValues;
  std::vector<std::size_t> columnIndices, rowIndices;

  COOMatrix(std::vector<T> values, std::vector<std::size_t> columns, std::vector<std::size_t> rows,
            const std::array<std::size_t, 2> &block = {1, 1})
      : COOMatrix(0, 0, std::move(values), std::move(columns), std::move(rows), block) {}
  COOMatrix(std::size_t rowCount, std::size_t columnCount, std::vector<T> values, std::vector<std::size_t> columns,
            std::vector<std::size_t> rows, const std::array<std::size_t, 2> &block = {1, 1})
      : Block(block), numRows(rowCount), numColumns(columnCount), nzValues(std::move(values)), columnIndices(std::move(columns)),
        rowIndices(std::move(rows)) {}
  /// A matrix with memory for this number of values.
  COOMatrix(std::size_t values, const std::array<std::size_t, 2> &block = {1, 1})
      : Block(block), nzValues(values), columnIndices(values), rowIndices(values) {}
  explicit COOMatrix(const std::array<std::size_t, 2> &block = {1, 1}) : Block(block) {}
};

/// Compressed rows: a column for each block, and the first value of each row of blocks.
template <class T> struct CSRMatrix : Block {
  std::size_t numRows = 0, numColumns = 0;
  std::vector<T> nzValues;
  std::vector<std::size_t> columnIndices, rowIndices;

  CSRMatrix(std::vector<T> values, std::vector<std::size_t> columns, std::vector<std::size_t> rows,
            const std::array<std::size_t, 2> &block = {1, 1})
      : CSRMatrix(0, 0, std::move(values), std::move(columns), std::move(rows), block) {}
  CSRMatrix(std::size_t rowCount, std::size_t columnCount, std::vector<T> values, std::vector<std::size_t> columns,
            std::vector<std::size_t> rows, const std::array<std::size_t, 2> &block = {1, 1})
      : Block(block), numRows(rowCount), numColumns(columnCount), nzValues(std::move(values)), columnIndices(std::move(columns)),
        rowIndices(std::move(rows)) {}
  CSRMatrix(std::size_t values, std::size_t rows, const std::array<std::size_t, 2> &block = {1, 1})
      : Block(block), nzValues(values), columnIndices(values), rowIndices(rows + 1) {}
  explicit CSRMatrix(const std::array<std::size_t, 2> &block = {1, 1}) : Block(block) {}
};

/// Compressed columns: a row for each block, and the first value of each column of blocks.
template <class T> struct CSCMatrix : Block {
  std::size_t numRows = 0, numColumns = 0;
  std::vector<T> nzValues;
  std::vector<std::size_t> columnIndices, rowIndices;

  CSCMatrix(std::vector<T> values, std::vector<std::size_t> columns, std::vector<std::size_t> rows,
            const std::array<std::size_t, 2> &block = {1, 1})
      : CSCMatrix(0, 0, std::move(values), std::move(columns), std::move(rows), block) {}
  CSCMatrix(std::size_t rowCount, std::size_t columnCount, std::vector<T> values, std::vector<std::size_t> columns,
            std::vector<std::size_t> rows, const std::array<std::size_t, 2> &block = {1, 1})
      : Block(block), numRows(rowCount), numColumns(columnCount), nzValues(std::move(values)), columnIndices(std::move(columns)),
        rowIndices(std::move(rows)) {}
  CSCMatrix(std::size_t values, std::size_t columns, const std::array<std::size_t, 2> &block = {1, 1})
      : Block(block), nzValues(values), columnIndices(columns + 1), rowIndices(values) {}
  explicit CSCMatrix(const std::array<std::size_t, 2> &block = {1, 1}) : Block(block) {}
};

} // namespace popsparse

#endif
