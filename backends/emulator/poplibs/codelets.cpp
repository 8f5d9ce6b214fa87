// addCodelets of every library.
#include <popnn/codelets.hpp>
#include <popops/codelets.hpp>
#include <poplin/codelets.hpp>
#include <poprand/codelets.hpp>
#include <popsparse/codelets.hpp>

#include "builtin.hpp"
#include "class_picks.hpp"

void popops::addCodelets(poplar::Graph &graph) { poplibs::addLibrary(graph, "popops"); }
void poplin::addCodelets(poplar::Graph &graph) { poplibs::addLibrary(graph, "poplin"); }
void popnn::addCodelets(poplar::Graph &graph) {
  poplibs::addLibrary(graph, "popnn");
  poplibs::addClassPicks(graph);
}
void poprand::addCodelets(poplar::Graph &graph) { poplibs::addLibrary(graph, "poprand"); }
void popsparse::addCodelets(poplar::Graph &graph) { poplibs::addLibrary(graph, "popsparse"); }
