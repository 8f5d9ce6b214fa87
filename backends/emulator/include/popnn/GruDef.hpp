// The gates of a GRU.
#ifndef SNNC_POPNN_GRU_DEF_HPP
#define SNNC_POPNN_GRU_DEF_HPP
/// The gate of each row of a cell's weights, in the usual order.
enum BasicGruCellUnit {
  BASIC_GRU_CELL_RESET_GATE = 0,
  BASIC_GRU_CELL_UPDATE_GATE = 1,
  BASIC_GRU_CELL_CANDIDATE = 2,
  BASIC_GRU_CELL_NUM_UNITS = 3
};
#endif
