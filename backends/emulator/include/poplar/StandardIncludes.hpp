// Headers of the standard library that programs get with Poplar's and rely on.
#ifndef SNNC_POPLAR_STANDARD_INCLUDES_HPP
#define SNNC_POPLAR_STANDARD_INCLUDES_HPP
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#endif
