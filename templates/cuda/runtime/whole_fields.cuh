// Where a convolution over many rows reads, forward or back, and how its targets are cut into tiles, one for a block.
#ifndef SNNC_WHOLE_FIELDS_CUH
#define SNNC_WHOLE_FIELDS_CUH

#include "convolution.hpp"
#include "whole_launch.hpp"

namespace snnc {

/// Target position y reads for tap i the place v = y * step + start + i * apart, where value v / spread of the source is; between, there is 0.
/// Back, the source is the deltas, and taps are counted from the other end.
struct Field {
  /// Channels of a group of the source and of the target.
  int groups, depth, width;
  int source[2], target[2], taps[2], step[2], apart[2], start[2], spread[2];
  bool back;
  /// Whether a pixel's string holds what all taps along x read, not only the channels.
  bool folded;

  ANYWHERE int positions() const { return target[0] * target[1]; }
  ANYWHERE int values() const { return source[0] * source[1]; }
  ANYWHERE int across() const { return folded ? 1 : taps[1]; }
  /// Taps that move from pixel to pixel.
  ANYWHERE int moves() const { return taps[0] * across(); }
  /// Numbers of a pixel's string, and of 16 of them.
  ANYWHERE int string() const { return folded ? depth * taps[1] : depth; }
  ANYWHERE int units() const { return (string() + 15) / 16; }
  /// Numbers that make up one sum.
  ANYWHERE int patch() const { return depth * taps[0] * taps[1]; }

  /// Index of a weight [out][in / groups][kernel]: of a target channel of a group, for number `q` of the string at a move; -1: there is none.
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

/// What a block takes: so many rows, and of each a rectangle of the target.
struct Cut {
  int images, high, wide;
  /// Numbers of blocks along each; `columns`: along the target's channels of a group.
  int image_parts, high_parts, wide_parts, columns;
  /// Pixels of a tile of one row that the rectangle reads.
  int tile[2];
  Divisor by_wide, by_high, by_tile[2];

  ANYWHERE int positions() const { return images * high * wide; }
  ANYWHERE int pixels() const { return images * tile[0] * tile[1]; }
  ANYWHERE int blocks(const Field &field) const { return image_parts * high_parts * wide_parts * columns * field.groups; }
};

/// Cuts targets into tiles of at most `most` positions and `most_pixels` pixels; images is 0 where not even one position finds room.
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

  DEVICE Tile(const Field &field, const Cut &cut) {
    int at = block_index();
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
  /// The pixel that its first tap reads.
  DEVICE int pixel(const Field &field, const Cut &cut) const {
    return (image * cut.tile[0] + y * field.step[0]) * cut.tile[1] + (field.folded ? x : x * field.step[1]);
  }
};

/// The place of the source that a pixel of a tile stands for; `y` or `x` is -1 where there is none. `column`: where it is in its tile.
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
