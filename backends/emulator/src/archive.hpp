// Values as bytes, for files: one list of members is used for writing and reading.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <poplar/Type.hpp>
#include <poplar/exceptions.hpp>

namespace poplar::core {

/// Throws graph_object_load_error.
[[noreturn]] inline void refuse(const std::string &what) { throw graph_object_load_error("the file holds no valid executable: " + what); }
inline void require(bool fits, const char *what) {
  if (!fits)
    refuse(what);
}

/// Objects that are written once and then referenced by a number; see graph_archive.cpp.
struct SavedOnce;
struct LoadedOnce;

/// Appends values to `bytes`.
class Saver {
public:
  static constexpr bool loads = false;
  std::string bytes;
  SavedOnce *once = nullptr;

  template <class T> Saver &operator()(const T &value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
      bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    else
      // The members are the same ones that reading fills; writing does not change them.
      describe(*this, const_cast<T &>(value));
    return *this;
  }
  template <class T> Saver &operator()(const std::vector<T> &values) {
    if constexpr (std::is_arithmetic_v<T>) {
      (*this)(std::uint64_t(values.size()));
      bytes.append(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
      return *this;
    } else {
      return list(values);
    }
  }
  template <class T> Saver &operator()(const std::set<T> &values) { return list(values); }
  template <class K, class V> Saver &operator()(const std::map<K, V> &values) { return list(values); }
  template <class A, class B> Saver &operator()(const std::pair<A, B> &value) { return (*this)(value.first)(value.second); }
  Saver &operator()(const std::string &text) {
    (*this)(std::uint64_t(text.size()));
    bytes += text;
    return *this;
  }
  Saver &operator()(const Type &type) { return (*this)(type.id()); }

private:
  template <class List> Saver &list(const List &values) {
    (*this)(std::uint64_t(values.size()));
    for (const auto &value : values)
      (*this)(value);
    return *this;
  }
};

/// Reads values from a range of bytes. A list grows as its elements are read, so a number in a file cannot allocate memory by itself.
class Loader {
public:
  static constexpr bool loads = true;
  LoadedOnce *once = nullptr;
  explicit Loader(const std::string &bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  template <class T> Loader &operator()(T &value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
      std::memcpy(&value, take(sizeof value), sizeof value);
    else
      describe(*this, value);
    return *this;
  }
  Loader &operator()(bool &value) {
    value = *take(1) != 0;
    return *this;
  }
  template <class T> Loader &operator()(std::vector<T> &values) {
    const std::uint64_t n = count();
    values.clear();
    if constexpr (std::is_arithmetic_v<T>) {
      require(n <= left() / sizeof(T), "a list that is longer than the file");
      values.resize(std::size_t(n));
      if (n > 0)
        std::memcpy(values.data(), take(std::size_t(n) * sizeof(T)), std::size_t(n) * sizeof(T));
      return *this;
    }
    values.reserve(std::size_t(std::min<std::uint64_t>(n, left() / sizeof(T))));
    for (std::uint64_t i = 0; i < n; ++i)
      values.push_back(element<T>());
    return *this;
  }
  template <class T> Loader &operator()(std::set<T> &values) {
    for (std::uint64_t n = count(); n > 0; --n)
      values.insert(element<T>());
    return *this;
  }
  template <class K, class V> Loader &operator()(std::map<K, V> &values) {
    for (std::uint64_t n = count(); n > 0; --n) {
      K key = element<K>();
      values.emplace(std::move(key), element<V>());
    }
    return *this;
  }
  template <class A, class B> Loader &operator()(std::pair<A, B> &value) { return (*this)(value.first)(value.second); }
  Loader &operator()(std::string &text) {
    const std::uint64_t n = count();
    text.assign(take(std::size_t(n)), std::size_t(n));
    return *this;
  }
  Loader &operator()(Type &type) {
    std::uint8_t id = 0;
    (*this)(id);
    require(id <= QUARTER_METADATA.id(), "an element type that there is not");
    type = Type(id);
    return *this;
  }
  std::size_t left() const { return std::size_t(end_ - at_); }

private:
  template <class T> T element() {
    T value = empty<T>();
    (*this)(value);
    return value;
  }
  template <class T> static T empty() {
    if constexpr (std::is_default_constructible_v<T>)
      return T();
    else
      return T(0);
  }
  /// Every element takes at least one byte.
  std::uint64_t count() {
    std::uint64_t n = 0;
    (*this)(n);
    require(n <= left(), "a list that is longer than the file");
    return n;
  }
  const char *take(std::size_t n) {
    require(n <= left(), "it ends too early");
    const char *taken = at_;
    at_ += n;
    return taken;
  }

  const char *at_, *end_;
};

} // namespace poplar::core
