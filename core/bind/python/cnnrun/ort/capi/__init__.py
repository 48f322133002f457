"""Where ONNX Runtime has its exceptions."""
