import json
import subprocess
import sys
from pathlib import Path

from tests.helpers.command_line import ENVIRONMENT, MODEL, SAFE, UNSAFE

_VERIFY = """
import json, sys
from fgp_vnn.base.deferred import DEFERRED, defer_modules, load_deferred
defer_modules()
from fgp_vnn.api.verify import verify
def statuses():
    return [verify(sys.argv[1], path, jobs=1).status for path in sys.argv[2:]]
def waiting():
    return [n for n in DEFERRED if n in sys.modules and type(sys.modules[n]).__name__ != "module"]
found = {"deferred": list(DEFERRED), "statuses": statuses(), "waiting": waiting()}
found["onnx"] = "torch.onnx" in sys.modules
import onnx2torch.utils.common, torch, types
from onnx2torch.node_converters import nms, roialign
vision = types.ModuleType("torchvision")
vision.ops = types.SimpleNamespace(nms="the real nms", roi_align=lambda x: f"aligned {x}")
sys.modules.update({"torchvision": vision, "torchvision.ops": vision.ops})
found["vision"] = [nms.torchvision.ops.nms, roialign.roi_align(1)]
found["opset"] = onnx2torch.utils.common.get_onnx_version()
found["normal"] = torch.distributions.Normal(0.0, 1.0).stddev.item()
found["then"] = waiting()
load_deferred()
found["finally"] = waiting()
found["again"] = statuses()
found["drawn"] = torch.rand(2, generator=torch.Generator().manual_seed(0)).tolist()
print(json.dumps(found))
"""


def run(text: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120, check=False
    )


def test_deferred_modules_are_not_needed_to_verify_and_are_loaded_by_a_look_at_a_name() -> None:
    done = run(_VERIFY, MODEL, SAFE, UNSAFE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["statuses"] == found["again"] == ["unsat", "sat"]
    assert found["waiting"] == found["deferred"]
    assert not found["onnx"]
    assert found["opset"] > 0
    assert found["vision"] == ["the real nms", "aligned 1"]
    assert found["normal"] == 1
    assert found["then"] == [name for name in found["deferred"] if name != "torch.distributions"]
    assert found["finally"] == []
    assert len(found["drawn"]) == 2


_THREADS = """
import sys, threading
from fgp_vnn.base.deferred import defer_modules
defer_modules(["slow_one"])
sys.path.insert(0, sys.argv[1])
import slow_one
faults = []
def look(name):
    try:
        getattr(slow_one, name)
    except Exception as error:
        faults.append(repr(error))
threads = [threading.Thread(target=look, args=(name,)) for name in ["first", "last"] * 3]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
from slow_one import *
print(faults, slow_one.runs, first, last, "hidden" in globals())
try:
    slow_one.missing
except AttributeError as error:
    print(error)
"""

_SLOW = """
import sys, time
runs = getattr(sys, "runs", 0) + 1
sys.runs = runs
first = "1st"
time.sleep(0.2)
if runs == 1:
    raise ValueError("the first run fails")
last, hidden = "2nd", True
__all__ = ["first", "last"]
"""


def test_threads_wait_for_a_module_and_one_that_failed_is_loaded_again(tmp_path: Path) -> None:
    (tmp_path / "slow_one.py").write_text(_SLOW)
    done = run(_THREADS, tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "[\"ValueError('the first run fails')\"] 2 1st 2nd False"
    assert second == "module 'slow_one' has no attribute 'missing'"
