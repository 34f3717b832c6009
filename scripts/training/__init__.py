"""Training of small ReLU networks, and their export to ONNX."""
