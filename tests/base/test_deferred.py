import json
import subprocess
import sys

from tests.helpers.command_line import ENVIRONMENT, MODEL, SAFE, UNSAFE

_VERIFY = """
import json, sys
from fgp_vnn.base.deferred import _DEFERRED, defer_modules, load_deferred
defer_modules()
from fgp_vnn.api.verify import verify
def statuses():
    return [verify(sys.argv[1], path, jobs=1).status for path in sys.argv[2:]]
def waiting():
    return [n for n in _DEFERRED if n in sys.modules and type(sys.modules[n]).__name__ != "module"]
found = {"deferred": list(_DEFERRED), "statuses": statuses(), "waiting": waiting()}
found["onnx"] = "torch.onnx" in sys.modules
import onnx2torch.utils.common, torch
found["opset"] = onnx2torch.utils.common.get_onnx_version()
found["normal"] = torch.distributions.Normal(0.0, 1.0).stddev.item()
found["then"] = waiting()
load_deferred()
found["finally"] = waiting()
found["again"] = statuses()
found["drawn"] = torch.rand(2, generator=torch.Generator().manual_seed(0)).tolist()
print(json.dumps(found))
"""


def test_deferred_modules_are_not_needed_to_verify_and_are_loaded_by_a_look_at_a_name() -> None:
    arguments = [sys.executable, "-c", _VERIFY, str(MODEL), str(SAFE), str(UNSAFE)]
    done = subprocess.run(
        arguments, capture_output=True, text=True, env=ENVIRONMENT, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["statuses"] == found["again"] == ["unsat", "sat"]
    assert found["waiting"] == found["deferred"]
    assert not found["onnx"]
    assert found["opset"] > 0
    assert found["normal"] == 1
    assert found["then"] == [name for name in found["deferred"] if name != "torch.distributions"]
    assert found["finally"] == []
    assert len(found["drawn"]) == 2
