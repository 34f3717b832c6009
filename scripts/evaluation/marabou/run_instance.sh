#!/usr/bin/env bash
# run_instance.sh v1 CATEGORY ONNX VNNLIB RESULTS_FILE TIMEOUT
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${MARABOU_PYTHON:-$folder/../../../.venv/bin/python}
timeout "$6" "$python" -W ignore "$folder/solve.py" "$3" "$4" "$5" "$6"
code=$?
[ $code -ne 124 ] && exit $code
echo timeout >"$5"
