"""Public names and the modules that define them; type checkers read this instead of __init__.py."""

from fgp_vnn.api.certify import Certifier as Certifier
from fgp_vnn.api.certify import certify as certify
from fgp_vnn.api.models import load_model as load_model
from fgp_vnn.api.monotone import Monotonicity as Monotonicity
from fgp_vnn.api.monotone import monotonicity as monotonicity
from fgp_vnn.api.properties import output_range as output_range
from fgp_vnn.api.properties import property_of as property_of
from fgp_vnn.api.properties import robustness as robustness
from fgp_vnn.api.properties import variables as variables
from fgp_vnn.api.radius import radius as radius
from fgp_vnn.api.sets import Ball as Ball
from fgp_vnn.api.values import bounds as bounds
from fgp_vnn.api.values import maximise as maximise
from fgp_vnn.api.verify import verify as verify
from fgp_vnn.base.errors import InputError as InputError
from fgp_vnn.base.errors import UnsupportedError as UnsupportedError
from fgp_vnn.base.radius import Radius as Radius
from fgp_vnn.base.ranges import Bounds as Bounds
from fgp_vnn.base.ranges import Maximum as Maximum
from fgp_vnn.base.results import Results as Results
from fgp_vnn.base.robustness import Robustness as Robustness
from fgp_vnn.base.verdict import Verdict as Verdict
from fgp_vnn.network import load_network as load_network
from fgp_vnn.property import Property as Property
from fgp_vnn.property import load_property as load_property
from fgp_vnn.property.conditions import any_of as any_of
from fgp_vnn.property.write import write_property as write_property

__version__: str
__all__: tuple[str, ...]
