// Codelets of the faults' programs, right and wrong ones.
#include <poplar/Vertex.hpp>

using namespace poplar;

class Scale : public Vertex {
public:
  InOut<Vector<float>> data;
  float factor;
  void compute() {
    for (float &x : data)
      x *= factor;
  }
};

template <class T> class Add : public Vertex {
public:
  Input<Vector<T>> a, b;
  Output<Vector<T>> out;
  void compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = T(a[i] + b[i]);
  }
};
template class Add<float>;
template class Add<half>;

class Sum : public Vertex {
public:
  Vector<Input<Vector<float>>> rows;
  Output<float> out;
  void compute() {
    float sum = 0;
    for (unsigned i = 0; i < rows.size(); ++i)
      for (float x : rows[i])
        sum += x;
    *out = sum;
  }
};

class Count : public Vertex {
public:
  InOut<int> counter;
  void compute() { *counter = *counter + 1; }
};

class Table : public Vertex {
public:
  Output<Vector<float>> out;
  Vector<float> table;
  void compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = table[i % table.size()];
  }
};

/// Writes `length` elements from `first` on, whatever the field holds.
class Reach : public Vertex {
public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  int first, length;
  void compute() {
    float *p = &out[0];
    for (int i = first; i < first + length; ++i)
      p[i] = 1;
  }
};

class Meddle : public Vertex {
public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  int where;
  void compute() {
    if (where >= 0)
      const_cast<float &>(in[unsigned(where)]) = 7;
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = 1;
  }
};

/// Workers write every sixth element, `step` apart.
class Neighbours : public MultiVertex {
public:
  InOut<Vector<unsigned short>> data;
  unsigned step;
  void compute(unsigned worker) { data[worker * step] = static_cast<unsigned short>(worker + 1); }
};

/// Each worker adds what stands `back` places before its own.
class Chain : public MultiVertex {
public:
  Input<Vector<int>> in;
  InOut<Vector<int>> data;
  bool chained;
  void compute(unsigned worker) { data[worker] += worker == 0 ? 1 : chained ? data[worker - 1] : in[worker - 1]; }
};

class Overrun : public MultiVertex {
public:
  Output<Vector<float>> out;
  unsigned length;
  void compute(unsigned worker) {
    float *p = &out[0];
    for (unsigned i = worker; i < length; i += numWorkers())
      p[i] = 1;
  }
};

/// Writes one element wherever it is told.
template <VectorLayout L> class Poke : public Vertex {
public:
  Output<Vector<float, L, 8>> out;
  int at;
  void compute() { *(&out[0] + at) = 1; }
};
template class Poke<VectorLayout::SPAN>;
template class Poke<VectorLayout::SHORT_SPAN>;
template class Poke<VectorLayout::ONE_PTR>;
template class Poke<VectorLayout::COMPACT_PTR>;
template class Poke<VectorLayout::SCALED_PTR32>;
template class Poke<VectorLayout::SCALED_PTR64>;
template class Poke<VectorLayout::SCALED_PTR128>;

class PokeRow : public Vertex {
public:
  Vector<Output<Vector<half, VectorLayout::ONE_PTR>>> rows;
  int row, at;
  void compute() { *(&rows[unsigned(row)][0] + at) = half(1); }
};

template <VectorListLayout L> class PokeList : public Vertex {
public:
  InOut<VectorList<float, L>> rows;
  int row, at;
  void compute() { *(&rows[unsigned(row)][0] + at) = 1; }
};
template class PokeList<VectorListLayout::DELTAN>;
template class PokeList<VectorListLayout::COMPACT_DELTAN>;

class PokeScalar : public Vertex {
public:
  Output<int> out;
  Input<int> in;
  int at;
  bool meddle;
  bool compute() {
    *(&*out + at) = 1;
    if (meddle)
      const_cast<int &>(*in) = 3;
    return true;
  }
};

class Bits : public Vertex {
public:
  InOut<Vector<int>> data;
  void compute() {
    for (int &x : data)
      x ^= 1;
  }
};

class Until : public Vertex {
public:
  InOut<int> left;
  Output<bool> more;
  void compute() {
    left = *left - 1;
    more = *left > 0;
  }
};
