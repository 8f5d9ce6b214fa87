"""Print how pip reaches the package index on this machine, so that pip in a different root, such as a container, can reach it too.

With ``environment``: shell commands that set the environment variables; with ``paths``: the files and folders that the settings name.
"""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ABOUT_THE_NETWORK = re.compile(r"(PIP_\w+|(https?|ftp|all|no)_proxy|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE)", re.IGNORECASE)
WHERE_IT_INSTALLS = {
    f"PIP_{name}" for name in ("CACHE_DIR", "CONFIG_FILE", "LOG", "PREFIX", "PYTHON", "REQUIRE_VIRTUALENV", "TARGET", "USER")
}
"""Settings that concern only this machine, such as pip's folders and log; they are left out."""


def settings() -> dict[str, str]:
    """Return pip's configuration as environment variables; variables of the environment override files, as in pip."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False).stdout
    variables = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        if not key.startswith(":env:"):
            name = "PIP_" + key.partition(".")[2].upper().replace("-", "_")
            variables[name] = " ".join(str(ast.literal_eval(value)).split())
    variables.update({key: value for key, value in os.environ.items() if ABOUT_THE_NETWORK.fullmatch(key)})
    return {key: value for key, value in variables.items() if key not in WHERE_IT_INSTALLS}


def paths(variables: dict[str, str]) -> list[str]:
    """Return the files and folders of this machine that the settings name."""
    named = [Path("/etc/ssl/certs")]
    for key, value in variables.items():
        words = [Path(unquote(word.removeprefix("file://"))) for word in value.split()]
        named += [word.parent if key.endswith("INDEX_URL") else word for word in words]  # an index refers to files beside it
    existing = dict.fromkeys(path for path in named if path.is_absolute() and path != Path("/") and path.exists())
    return [str(path) for path in existing if not any(path != other and path.is_relative_to(other) for other in existing)]


variables = settings()
if sys.argv[1] == "environment":
    print("\n".join(f"export {key}={shlex.quote(value)}" for key, value in variables.items()))
else:
    print("\n".join(paths(variables)))
