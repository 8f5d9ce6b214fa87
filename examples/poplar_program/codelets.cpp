// A vertex that computes the neurons of one tile: leaky integrate-and-fire neurons that excite their neighbours on a ring.
#include <poplar/Vertex.hpp>

using namespace poplar;

class Fire : public Vertex {
public:
  Input<Vector<float>> drive;    // external current of each neuron
  Input<Vector<float>> spikes;   // of the previous step, with one neighbour at each end
  InOut<Vector<float>> membrane; // of each neuron
  Output<Vector<float>> fired;   // 0 or 1
  float decay, coupling;

  void compute() {
    for (unsigned i = 0; i < membrane.size(); ++i) {
      const float v = decay * membrane[i] + drive[i] + coupling * (spikes[i] + spikes[i + 2]);
      const bool over = v > 1.0f;
      fired[i] = over ? 1.0f : 0.0f;
      membrane[i] = over ? -1.0f : v; // the low reset makes the neuron refractory for some steps
    }
  }
};
