"""Handlers of ONNX operators: functions that create the nodes of a flat graph for one operator."""
