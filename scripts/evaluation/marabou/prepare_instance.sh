#!/usr/bin/env bash
# prepare_instance.sh v1 CATEGORY ONNX VNNLIB: only checks that Marabou is installed
python=${MARABOU_PYTHON:-$(dirname "${BASH_SOURCE[0]}")/../../../.venv/bin/python}
"$python" -W ignore -c 'import maraboupy.MarabouCore' && exit 0
echo "prepare_instance.sh: $python has no maraboupy (run scripts/setup.sh, or set MARABOU_PYTHON)" >&2
exit 2
