// The gates of an LSTM.
#ifndef SNNC_POPNN_LSTM_DEF_HPP
#define SNNC_POPNN_LSTM_DEF_HPP
/// The gate of each row of a cell's weights, in the usual order.
enum BasicLstmCellUnit {
  BASIC_LSTM_CELL_FORGET_GATE = 0,
  BASIC_LSTM_CELL_INPUT_GATE = 1,
  BASIC_LSTM_CELL_CANDIDATE = 2,
  BASIC_LSTM_CELL_OUTPUT_GATE = 3,
  BASIC_LSTM_CELL_NUM_UNITS = 4
};
#endif
