// Standard headers that programs get through Poplar's and rely on. Emitted programs include what they use, and are compiled without these.
#ifndef SNNC_POPLAR_STANDARD_INCLUDES_HPP
#define SNNC_POPLAR_STANDARD_INCLUDES_HPP
#ifndef SNNC_LEAN_HEADERS
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#endif
#endif
