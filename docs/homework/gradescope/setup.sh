#!/usr/bin/env bash
# Gradescope runs this once, when it builds the autograder's image. It installs triton-prep in an environment of its own:
# from a wheel that lies in the zip beside this file, else from the package index.
set -euo pipefail
ROOT="${AUTOGRADER:-/autograder}"
VENV="${VENV:-$ROOT/venv}"
export PIP_EXTRA_INDEX_URL="${PIP_EXTRA_INDEX_URL-https://download.pytorch.org/whl/cpu}"  # PyTorch without CUDA

apt-get update
apt-get install -y --no-install-recommends libseccomp2 python3-pip
if [ ! -x "$VENV/bin/python" ]; then
    if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        apt-get install -y --no-install-recommends python3-venv
        python3 -m venv "$VENV"
    else
        python3 -m pip install uv # brings a newer Python
        python3 -m uv venv --seed --python 3.12 "$VENV"
    fi
fi
package="$(find "$ROOT/source" -maxdepth 1 -name 'triton_prep-*.whl' | head -n 1)"
"$VENV/bin/python" -m pip install "${package:-triton-prep}"
"$VENV/bin/triton-prep" doctor
