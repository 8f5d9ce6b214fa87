"""Check whether ``snnc[frameworks]`` can be installed here from wheels without GPU libraries.

The exit status is 0 if it can, else 1. The reason is on stdout; if pip cannot find out, its error is on stderr.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

FOR_GPUS = ("nvidia-", "cuda-", "triton")

wanted = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["frameworks"]
pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--dry-run", "--ignore-installed"]
done = subprocess.run([*pip, "--only-binary", ":all:", "--report", "-", *wanted], capture_output=True, text=True, check=False)
if done.returncode:
    if "No matching distribution found" not in done.stderr:
        sys.exit(done.stderr + "pip cannot look for the frameworks.")
    print(f"no wheels for Python {sys.version_info[0]}.{sys.version_info[1]}")
    sys.exit(1)
names = [item["metadata"]["name"].lower().replace("_", "-") for item in json.loads(done.stdout)["install"]]
if large := [name for name in names if name.startswith(FOR_GPUS)]:
    print(f"the wheels that pip finds bring {len(large)} packages for GPUs, several gigabytes")
    sys.exit(1)
