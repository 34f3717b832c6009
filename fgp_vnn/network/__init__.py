"""ONNX networks in the normal form of affine maps joined by ReLU layers."""

from fgp_vnn.network.maps.operator import Operator
from fgp_vnn.network.model import AffineMap, Dense, Network
from fgp_vnn.network.onnx.load import LoadedNetwork, load_network
from fgp_vnn.network.onnx.runtime import Runtime

__all__ = ["AffineMap", "Dense", "LoadedNetwork", "Network", "Operator", "Runtime", "load_network"]
