"""What a browser's session inherits of the environment: what the app, torch and Triton read, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

NAMES = {
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "VIRTUAL_ENV",
    "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX", "NO_COLOR",
    "SSH_CONNECTION",
}  # fmt: skip
PREFIXES = (
    "LC_", "XDG_", "TRITON_", "TORCH", "PYTORCH_", "CUDA", "NVIDIA_", "HIP_", "ROCM_", "ROCR_", "OMP_", "MKL_",
    "OPENBLAS_", "TEXTUAL_",
)  # fmt: skip
SECRET = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY")


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a session may see. A list of what is needed: nobody can list every name of a secret."""
    return {
        name: value
        for name, value in environment.items()
        if (name in NAMES or name.startswith(PREFIXES)) and not any(word in name.upper() for word in SECRET)
    }
