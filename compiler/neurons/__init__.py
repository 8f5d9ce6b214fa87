"""The library of neuron models, one file a model, in the language of snnc.compiler.neuron."""
