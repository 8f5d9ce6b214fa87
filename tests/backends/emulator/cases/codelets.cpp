// Codelets of the emulator's tests.
#include <poplar/Vertex.hpp>

using namespace poplar;

template <class T> class Add : public Vertex {
public:
  Input<Vector<T>> a, b;
  Output<Vector<T>> out;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = T(a[i] + b[i]);
    return true;
  }
};
template class Add<float>;
template class Add<int>;
template class Add<unsigned>;
template class Add<half>;

class Scale : public Vertex {
public:
  InOut<Vector<float>> data;
  float factor;
  void compute() {
    for (float &x : data)
      x *= factor;
  }
};

class Dot : public Vertex {
public:
  Input<Vector<float, VectorLayout::ONE_PTR>> a;
  Input<Vector<float>> b;
  Output<float> out;
  void compute() {
    float sum = 0;
    for (unsigned i = 0; i < b.size(); ++i)
      sum += a[i] * b[i];
    *out = sum;
  }
};

class CopyIn : public Vertex {
public:
  Input<Vector<int>> in;
  Output<Vector<int>> out;
  void compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = in[i];
  }
};

class AddOne : public Vertex {
public:
  InOut<Vector<int>> data;
  void compute() {
    for (int &x : data)
      ++x;
  }
};

class Count : public Vertex {
public:
  InOut<int> counter;
  Output<bool> below;
  int limit;
  void compute() {
    *counter = *counter + 1;
    below = *counter < limit;
  }
};

/// Keeps a private member between executions.
class Remember : public Vertex {
  int runs;

public:
  Output<int> out;
  void compute() { out = ++runs; }
};

class Counted : public Vertex {
public:
  InOut<Vector<int>> data;
  unsigned cycles;
  void compute() {
    ++data[0];
    SNNC_COUNT_CYCLES(cycles);
  }
};

class CountedMulti : public MultiVertex {
public:
  InOut<Vector<int>> data;
  void compute(unsigned worker) {
    for (unsigned i = worker; i < data.size(); i += numWorkers()) {
      data[i] += int(worker);
      SNNC_COUNT_CYCLES(10);
    }
  }
};

/// Neighbouring workers write the halves of one word.
class HalfWords : public MultiVertex {
public:
  InOut<Vector<unsigned short>> data;
  void compute(unsigned worker) { data[worker] = static_cast<unsigned short>(worker + 1); }
};

/// Every worker needs what the one before it wrote.
class RunningSum : public MultiVertex {
public:
  InOut<Vector<int>> data;
  void compute(unsigned worker) { data[worker] += worker == 0 ? 1 : data[worker - 1]; }
};

class SumRows : public Vertex {
public:
  Vector<Input<Vector<float>>> rows;
  Output<Vector<float>> out;
  void compute() {
    for (unsigned i = 0; i < rows.size(); ++i) {
      float sum = 0;
      for (unsigned j = 0; j < rows[i].size(); ++j)
        sum += rows[i][j];
      out[i] = sum;
    }
  }
};

/// Rows are assigned as a whole.
class CopyRows : public Vertex {
public:
  Vector<Input<Vector<float>>> in;
  Vector<Output<Vector<float>>> out;
  void compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = in[i];
  }
};

class SumList : public Vertex {
public:
  Input<VectorList<float, VectorListLayout::DELTAN>> rows;
  Output<Vector<float>> out;
  Vector<float> offsets;
  void compute() {
    for (unsigned i = 0; i < rows.size(); ++i) {
      out[i] = offsets[i];
      for (float x : rows[i])
        out[i] += x;
    }
  }
};

namespace inner {
enum class Mode { FIRST, LAST };
template <class T, Mode M, bool Negate> class Pick : public Vertex {
public:
  Input<Vector<T, VectorLayout::SHORT_SPAN>> in;
  Output<T> out;
  void compute() {
    const T value = M == Mode::FIRST ? in[0] : in[in.size() - 1];
    *out = Negate ? T(-value) : value;
  }
};
template class Pick<int, Mode::LAST, true>;
template class Pick<unsigned short, Mode::FIRST, false>;
} // namespace inner

/// Writes all of `out`, as many elements as there are.
class Fill : public Vertex {
public:
  Input<Vector<int>> in;
  Output<Vector<int>> out;
  bool compute() {
    for (unsigned i = 0; i < out.size(); ++i)
      out[i] = in[0];
    return true;
  }
};

/// Writes one element at `at`, which may lie outside `out`.
class Overrun : public Vertex {
public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  unsigned at;
  void compute() {
    float *p = &out[0];
    for (unsigned i = 0; i < out.size(); ++i)
      p[i] = in[i];
    p[at] = 1;
  }
};

/// Writes before its field.
class Underrun : public Vertex {
public:
  Output<Vector<float, VectorLayout::ONE_PTR>> out;
  void compute() { (&out[0])[-1] = 1; }
};

/// Writes to its input.
class WriteInput : public Vertex {
public:
  Input<Vector<float>> in;
  Output<Vector<float>> out;
  void compute() {
    const_cast<float &>(in[2]) = 7;
    out[0] = 1;
  }
};

/// Adds the size of a `long`.
class Supervise : public SupervisorVertex {
public:
  InOut<Vector<long>> data;
  __attribute__((target("supervisor"))) void compute() {
    for (unsigned i = 0; i < data.size(); ++i)
      data[i] += sizeof(data[0]);
    SNNC_COUNT_CYCLES(50);
  }
};
