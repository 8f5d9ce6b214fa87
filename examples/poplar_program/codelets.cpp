// A vertex for the neurons of one tile: leaky integrate-and-fire neurons that excite their neighbours on a ring.
#include <poplar/Vertex.hpp>

using namespace poplar;

class Fire : public Vertex {
public:
  Input<Vector<float>> drive;    // current from outside, one a neuron
  Input<Vector<float>> spikes;   // of the step before, with one neighbour more at each end
  InOut<Vector<float>> membrane; // one a neuron
  Output<Vector<float>> fired;   // 0 or 1
  float decay, coupling;

  void compute() {
    for (unsigned i = 0; i < membrane.size(); ++i) {
      const float v = decay * membrane[i] + drive[i] + coupling * (spikes[i] + spikes[i + 2]);
      const bool over = v > 1.0f;
      fired[i] = over ? 1.0f : 0.0f;
      membrane[i] = over ? -1.0f : v; // after a spike, a neuron does not answer for a while
    }
  }
};
