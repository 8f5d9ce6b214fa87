// ---- relays: all workers of a tile share the samples of a relay ----------------------------------------------------------------

namespace {

/// Ids are moved as whole words: two 16-bit ids or one 32-bit id.
typedef unsigned __attribute__((may_alias)) Word;

/// Returns the number of words of `ids` ids.
template <class Id> inline unsigned id_words(unsigned ids) { return (ids * sizeof(Id) + 3) / 4; }

/// The three forms of a mask unit: spikes of 32 neurons, in one word; 16 neurons, with spikes in the upper half of a
/// word and neurons that only receive a gradient in the lower half; or both for 32 neurons, in two words. The first neuron is the highest bit.
enum class Mask { SPIKES, HALVES, PAIRS };

/// A piece of a relay's mask for one worker; see relay_pieces() in populations.hpp.
struct Piece {
  unsigned sample, place, run, units, begin, from, to, head, tail;
};

/// Returns a piece. `pieces` contains [WORKERS + 1] indices of the workers' first pieces, then the pieces.
[[maybe_unused]] inline const Piece &piece_of(const unsigned *pieces, unsigned number) {
  return *reinterpret_cast<const Piece *>(&pieces[WORKERS + 1 + number * (sizeof(Piece) / sizeof(unsigned))]);
}

/// The ids that a worker finds: spikes from the start of its space upwards, neurons that only receive a gradient from its end downwards.
struct Found {
  unsigned *up, *down;
  unsigned runs = 0, groups = 0, singles = 0, hits = 0;

  template <Mask KIND> void take(const unsigned *unit, unsigned first) {
    for (unsigned bits = KIND == Mask::HALVES ? *unit & 0xffff0000u : *unit; bits != 0;) {
      const unsigned lead = static_cast<unsigned>(__builtin_clz(bits));
      *up++ = first + lead;
      bits ^= 0x80000000u >> lead;
    }
    if (KIND == Mask::SPIKES)
      return;
    for (unsigned bits = KIND == Mask::HALVES ? *unit << 16 : unit[1]; bits != 0;) {
      const unsigned lead = static_cast<unsigned>(__builtin_clz(bits));
      *--down = first + lead;
      bits ^= 0x80000000u >> lead;
    }
  }

  /// Scans consecutive units, four words at once, because most have no set bit.
  template <Mask KIND> void scan(const unsigned *unit, const unsigned *first, unsigned units) {
    constexpr unsigned WORDS = KIND == Mask::PAIRS ? 2 : 1, TOGETHER = 4 / WORDS;
    unsigned i = 0;
    for (; i + TOGETHER <= units; i += TOGETHER, unit += 4) {
      if ((unit[0] | unit[1] | unit[2] | unit[3]) == 0)
        continue;
      ++hits;
      for (unsigned n = 0; n < TOGETHER; ++n)
        take<KIND>(&unit[n * WORDS], first[i + n]);
    }
    groups += i / TOGETHER;
    singles += units - i;
    for (; i < units; ++i, unit += WORDS)
      take<KIND>(unit, first[i]);
    ++runs;
  }

  /// Scans all units of a piece: one run, or one run per tile, `skip` words apart.
  template <Mask KIND>
  __attribute__((noinline)) void scan(const unsigned *mask, const unsigned *first, const Piece &piece, unsigned row, unsigned skip) {
    constexpr unsigned WORDS = KIND == Mask::PAIRS ? 2 : 1;
    const unsigned *unit = &mask[WORDS * piece.place];
    first += piece.begin;
    for (unsigned left = piece.units, run = piece.run; left != 0; run = left < row ? left : row) {
      scan<KIND>(unit, first, run);
      unit += WORDS * run + skip;
      first += run;
      left -= run;
    }
  }
};

/// Returns the first id after a piece among the spikes (GRADIENT: the neurons that only receive a gradient) of its sample; 0 if there is none.
template <bool GRADIENT>
inline unsigned id_behind(const unsigned *pieces, const unsigned *counts, const unsigned *ids, unsigned number, unsigned tail) {
  for (; number < tail; ++number)
    if (counts[2 * number + GRADIENT] != 0)
      return GRADIENT ? ids[piece_of(pieces, number).to - 1] : ids[piece_of(pieces, number).from];
  return 0;
}

/// Writes the words that begin at positions [begin, end) of a list, from ids that are STEP apart; `next` is the id after the last one.
/// Returns the number of words.
template <class Id, int STEP, class Write>
__attribute__((noinline)) unsigned join(const unsigned *ids, unsigned begin, unsigned end, unsigned next, const Write &write) {
  if (sizeof(Id) == 4) {
    for (unsigned place = begin; place < end; ++place, ids += STEP)
      write(place, *ids);
    return end - begin;
  }
  unsigned place = begin + begin % 2;
  ids += begin % 2 != 0 ? STEP : 0;
  for (; place + 1 < end; place += 2, ids += 2 * STEP)
    write(place, ids[0] | ids[STEP] << 16);
  if (place < end)
    write(place, ids[0] | next << 16);
  return (end + 1) / 2 - (begin + 1) / 2;
}

/// A bijection of 32-bit unsigned integers in which every result bit depends on all bits.
[[maybe_unused]] inline unsigned mixed(unsigned x) {
  x = (x ^ x >> 16) * 0x85EBCA6Bu;
  x = (x ^ x >> 13) * 0xC2B2AE35u;
  return x ^ x >> 16;
}

/// The choice of the spikes that are sent in a step: those with the lowest scores, which are all different.
struct Choice {
  unsigned of_step;

  Choice(unsigned key, unsigned step) : of_step(mixed(key * 0x9E3779B1u + step * 0x85EBCA77u)) {}
  unsigned score(unsigned id) const { return mixed(of_step + id * 0xC2B2AE3Du); }

  /// Returns the score below which `kept` spikes of a sample lie; its bits are determined from the highest on.
  unsigned bound(const unsigned *pieces, const unsigned *counts, const unsigned *ids, const Piece &of, unsigned kept) const {
    unsigned found = 0;
    for (unsigned bit = 0x80000000u; bit != 0; bit >>= 1) {
      unsigned below = 0;
      for (unsigned q = of.head; q < of.tail; ++q)
        for (unsigned i = 0, from = piece_of(pieces, q).from; i < counts[2 * q]; ++i)
          below += score(ids[from + i]) < (found | bit);
      found = below <= kept ? found | bit : found;
    }
    return found;
  }

  /// Writes the words of the list of the `kept` spikes that a sample sends; `next` is the id after the last one.
  template <class Id, class Write> __attribute__((noinline)) unsigned join(const unsigned *pieces, const unsigned *counts,
                                                                           const unsigned *ids, const Piece &of, unsigned kept,
                                                                           unsigned next, const Write &write) const {
    const unsigned limit = bound(pieces, counts, ids, of, kept);
    unsigned place = 0, low = 0;
    for (unsigned q = of.head; q < of.tail; ++q)
      for (unsigned i = 0, from = piece_of(pieces, q).from; i < counts[2 * q]; ++i) {
        const unsigned id = ids[from + i];
        if (score(id) >= limit)
          continue;
        if (sizeof(Id) == 4)
          write(place, id);
        else if (place % 2 == 0)
          low = id;
        else
          write(place - 1, low | id << 16);
        ++place;
      }
    if (sizeof(Id) == 2 && place % 2 != 0)
      write(place - 1, low | next << 16);
    return id_words<Id>(place);
  }
};

/// Writes words [begin, end) of a list of bits, from the ids of a piece and those after it; returns the number of ids.
[[maybe_unused]] __attribute__((noinline)) unsigned put_bits(const unsigned *pieces, const unsigned *counts, const unsigned *found_ids,
                                                             unsigned number, unsigned begin, unsigned end, unsigned *bits) {
  unsigned word = begin, value = 0, put = 0;
  for (const unsigned tail = piece_of(pieces, number).tail; number < tail; ++number) {
    const unsigned *ids = &found_ids[piece_of(pieces, number).from];
    for (unsigned i = 0; i < counts[2 * number] && ids[i] < 32 * end; ++i) {
      if (ids[i] < 32 * begin)
        continue;
      for (; word < ids[i] / 32; value = 0)
        bits[word++] = value;
      value |= 0x80000000u >> ids[i] % 32;
      ++put;
    }
  }
  for (; word < end; value = 0)
    bits[word++] = value;
  return put;
}

/// Lists the ids of set bits in words [begin, end) of `words`, the first of which has a given position in a window: writes the words of the
/// window that begin with one of these ids. Returns the number of bits.
template <class Id> __attribute__((noinline)) unsigned list_bits(const unsigned *bits, unsigned words, unsigned begin, unsigned end,
                                                                 int place, int room, Id *window) {
  Word *list = reinterpret_cast<Word *>(window);
  unsigned low = 0, found = 0;
  bool open = false;
  for (unsigned w = begin; w < end; ++w)
    for (unsigned left = bits[w]; left != 0; ++place, ++found) {
      const unsigned lead = static_cast<unsigned>(__builtin_clz(left)), id = 32 * w + lead;
      left ^= 0x80000000u >> lead;
      if (sizeof(Id) == 4) {
        if (place >= 0 && place < room)
          list[place] = id;
      } else if (place % 2 == 0) {
        low = id;
        open = place >= 0 && place < room;
      } else if (open) {
        list[place / 2] = low | id << 16;
        open = false;
      }
    }
  unsigned next = end;
  while (open && next < words && bits[next] == 0)
    ++next;
  if (open)
    list[place / 2] = low | (next < words ? 32 * next + static_cast<unsigned>(__builtin_clz(bits[next])) : 0) << 16;
  return found;
}

/// Returns the number of set bits in words [begin, end).
[[maybe_unused]] __attribute__((noinline)) unsigned count_bits(const unsigned *bits, unsigned begin, unsigned end) {
  unsigned found = 0;
  for (unsigned w = begin; w < end; ++w)
    found += static_cast<unsigned>(__builtin_popcount(bits[w]));
  return found;
}

/// Returns the larger of `left` and the number of `all` events beyond `room`.
[[maybe_unused]] inline unsigned most_left(unsigned left, unsigned all, unsigned room) {
  return all > room && all - room > left ? all - room : left;
}

/// Returns the number of windows of `room` events for `events` events.
[[maybe_unused]] inline unsigned further_windows(unsigned events, unsigned room) { return (events + room - 1) / room; }

/// Calls share for a worker's shares of the lists of all samples: of each list, the words whose index modulo WORKERS is in [first, first + span).
template <class Share> inline void each_share(unsigned samples, unsigned worker, const Share &share) {
  for (unsigned at = worker * samples, end = at + samples; at < end;) {
    const unsigned first = at % WORKERS, span = WORKERS - first < end - at ? WORKERS - first : end - at;
    share(at / WORKERS, first, span);
    at += span;
  }
}

/// Number of copied words, and of runs.
struct Copied {
  unsigned words = 0, runs = 0;
};

/// Copies a worker's share (see each_share) of `words` words.
template <class Value>
__attribute__((noinline)) Copied copy_share(const Value *from, Value *to, unsigned words, unsigned first, unsigned span) {
  Copied copied;
  for (unsigned begin = first; begin < words; begin += WORKERS, ++copied.runs)
    for (unsigned i = begin; i < begin + span && i < words; ++i, ++copied.words)
      to[i] = from[i];
  return copied;
}

/// Copies a worker's share of `ids` ids, rounded up to whole words.
template <class Id> inline Copied copy_ids(const Id *from, Id *to, unsigned ids, unsigned first, unsigned span) {
  return copy_share(reinterpret_cast<const Word *>(from), reinterpret_cast<Word *>(to), id_words<Id>(ids), first, span);
}

template <class Id> inline Word *words_of(Id *ids) { return reinterpret_cast<Word *>(ids); }

/// Copies `number` values to a segment boundary or back.
template <class Value> [[maybe_unused]] inline void copy_all(const Value *__restrict from, Value *__restrict to, unsigned long number) {
  for (unsigned long i = 0; i < number; ++i)
    to[i] = from[i];
}

} // namespace
