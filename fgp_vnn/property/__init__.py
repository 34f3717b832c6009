"""VNN-LIB properties: `load_property` reads a file into a `Property`."""

from fgp_vnn.property.load import load_property
from fgp_vnn.property.model import Case, Conjunction, Property, Variable

__all__ = ["Case", "Conjunction", "Property", "Variable", "load_property"]
