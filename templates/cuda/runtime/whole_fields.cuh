// Geometry of a convolution over many rows, forward or backward: what it reads, and its division into tiles, one per block.
#ifndef SNNC_WHOLE_FIELDS_CUH
#define SNNC_WHOLE_FIELDS_CUH

#include "convolution.hpp"
#include "whole_launch.hpp"

namespace snnc {

/// For tap i, target position y reads position v = y * step + start + i * apart, which is value v / spread of the source, or 0 if not integer.
/// In the backward pass, the source is the deltas, and taps are in reverse order.
struct Field {
  /// Number of groups, and channels per group of the source and of the target.
  int groups, depth, width;
  int source[2], target[2], taps[2], step[2], apart[2], start[2], spread[2];
  bool back;
  /// Whether the string of a pixel contains the values of all taps along x, not only the channels.
  bool folded;

  ANYWHERE int positions() const { return target[0] * target[1]; }
  ANYWHERE int values() const { return source[0] * source[1]; }
  ANYWHERE int across() const { return folded ? 1 : taps[1]; }
  /// Number of taps that move from pixel to pixel.
  ANYWHERE int moves() const { return taps[0] * across(); }
  /// Length of a pixel's string, and number of its units of 16 values.
  ANYWHERE int string() const { return folded ? depth * taps[1] : depth; }
  ANYWHERE int units() const { return (string() + 15) / 16; }
  /// Number of terms in one sum.
  ANYWHERE int patch() const { return depth * taps[0] * taps[1]; }

  /// Returns the index of a weight [out][in / groups][kernel] of a target channel of a group, for value `q` of the string at a move; -1: none.
  DEVICE int weight(int group, int channel, int q, int move) const {
    if (channel >= width || q >= string())
      return -1;
    int row = move / across(), column = move % across(), from = q;
    if (folded) {
      from = q / taps[1];
      column = q % taps[1];
    }
    if (!back)
      return ((group * width + channel) * depth + from) * taps[0] * taps[1] + row * taps[1] + column;
    row = taps[0] - 1 - row;
    column = taps[1] - 1 - column;
    return ((group * depth + from) * width + channel) * taps[0] * taps[1] + row * taps[1] + column;
  }
};

inline Field forward_field(const Windows &w) {
  return {w.groups,
          w.channels / w.groups,
          w.outputs / w.groups,
          {w.size[0], w.size[1]},
          {w.output[0], w.output[1]},
          {w.kernel[0], w.kernel[1]},
          {w.stride[0], w.stride[1]},
          {w.dilation[0], w.dilation[1]},
          {-w.before[0], -w.before[1]},
          {1, 1},
          false,
          false};
}

inline Field backward_field(const Windows &w) {
  return {w.groups,
          w.outputs / w.groups,
          w.channels / w.groups,
          {w.output[0], w.output[1]},
          {w.size[0], w.size[1]},
          {w.kernel[0], w.kernel[1]},
          {1, 1},
          {w.dilation[0], w.dilation[1]},
          {w.before[0] - (w.kernel[0] - 1) * w.dilation[0], w.before[1] - (w.kernel[1] - 1) * w.dilation[1]},
          {w.stride[0], w.stride[1]},
          true,
          false};
}

/// The part of a block: a number of rows, and a rectangle of the target in each.
struct Cut {
  int images, high, wide;
  /// Number of blocks along each dimension; `columns`: along the target channels of a group.
  int image_parts, high_parts, wide_parts, columns;
  /// Size in pixels of the tile that the rectangle reads in one row.
  int tile[2];
  Divisor by_wide, by_high, by_tile[2];

  ANYWHERE int positions() const { return images * high * wide; }
  ANYWHERE int pixels() const { return images * tile[0] * tile[1]; }
  ANYWHERE int blocks(const Field &field) const { return image_parts * high_parts * wide_parts * columns * field.groups; }
};

/// Divides targets into tiles of at most `most` positions and `most_pixels` pixels; images is 0 if not even one position fits.
inline Cut cut_field(const Field &field, int rows, int most, int columns, std::size_t most_pixels) {
  const auto parts = [](int count, int part) { return (count + part - 1) / part; };
  Cut cut{};
  for (; most > 0; most /= 2) {
    cut.wide_parts = parts(field.target[1], most);
    cut.wide = parts(field.target[1], cut.wide_parts);
    cut.high_parts = parts(field.target[0], std::min(field.target[0], std::max(1, most / cut.wide)));
    cut.high = parts(field.target[0], cut.high_parts);
    cut.images = cut.wide_parts * cut.high_parts == 1 ? std::max(1, std::min(rows, most / field.positions())) : 1;
    cut.image_parts = parts(rows, cut.images);
    cut.columns = columns;
    cut.tile[0] = (cut.high - 1) * field.step[0] + (field.taps[0] - 1) * field.apart[0] + 1;
    cut.tile[1] = field.folded ? cut.wide : (cut.wide - 1) * field.step[1] + (field.taps[1] - 1) * field.apart[1] + 1;
    cut.by_wide = divisor(cut.wide);
    cut.by_high = divisor(cut.high);
    cut.by_tile[0] = divisor(cut.tile[0]);
    cut.by_tile[1] = divisor(cut.tile[1]);
    if (static_cast<std::size_t>(cut.pixels()) <= most_pixels)
      return cut;
  }
  return {};
}

/// A block's tile: its first row, target position and columns.
struct Tile {
  int image, y, x, group, column;

  DEVICE Tile(const Field &field, const Cut &cut, int block) {
    int at = block;
    column = at % cut.columns;
    at /= cut.columns;
    x = at % cut.wide_parts * cut.wide;
    at /= cut.wide_parts;
    y = at % cut.high_parts * cut.high;
    at /= cut.high_parts;
    group = at % field.groups;
    image = at / field.groups * cut.images;
  }
};

/// A position of a tile.
struct Position {
  int image, y, x;

  DEVICE Position(const Cut &cut, int index) {
    const int row = cut.by_wide.quotient(index);
    x = index - row * cut.wide;
    image = cut.by_high.quotient(row);
    y = row - image * cut.high;
  }
  /// Returns the pixel that its first tap reads.
  DEVICE int pixel(const Field &field, const Cut &cut) const {
    return (image * cut.tile[0] + y * field.step[0]) * cut.tile[1] + (field.folded ? x : x * field.step[1]);
  }
};

/// The source position of a pixel of a tile; `y` or `x` is -1 if there is none. `column`: column of the pixel in its tile.
struct Pixel {
  int image, y, x, column;

  DEVICE Pixel(const Field &field, const Cut &cut, const Tile &tile, int index) {
    const int row = cut.by_tile[1].quotient(index);
    column = index - row * cut.tile[1];
    image = cut.by_tile[0].quotient(row);
    y = place(field, 0, tile.y * field.step[0] + field.start[0] + row - image * cut.tile[0]);
    x = field.folded ? 0 : place(field, 1, tile.x * field.step[1] + field.start[1] + column);
  }
  DEVICE static int place(const Field &field, int axis, int at) {
    if (at < 0)
      return -1;
    if (field.spread[axis] == 1)
      return at < field.source[axis] ? at : -1;
    return at % field.spread[axis] == 0 && at / field.spread[axis] < field.source[axis] ? at / field.spread[axis] : -1;
  }
};

} // namespace snnc

#endif
