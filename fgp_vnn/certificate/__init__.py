"""Certificates: what a proof of `unsat` consists of, and its checker.

The checker knows numpy, onnx and the reader of properties. It shares no bound, no search and no
reader of networks with the verifier, and does not load torch.
"""
