"""Certificates: proofs of `unsat` in a file, and their independent checker.

The checker uses numpy, onnx and the property reader only. It shares no bounds, search or network
reader with the verifier, and does not load torch.
"""
