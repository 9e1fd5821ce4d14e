"""Starts and stops a disposable real Ceph. Stands alone: of leadline it knows only the errors.

What is named here is loaded when it is asked for: a command that asks for one part waits for no other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.lab.lab import Lab, open, start
    from leadline.lab.network.members import HOST
    from leadline.lab.spec import LabSpec
    from leadline.lab.status import LabStatus
    from leadline.lab.targets import LabTarget

__all__ = ["HOST", "Lab", "LabSpec", "LabStatus", "LabTarget", "open", "start"]
_PLACES = {
    "HOST": "network.members",
    **dict.fromkeys(("Lab", "open", "start"), "lab"),
    "LabSpec": "spec",
    "LabStatus": "status",
    "LabTarget": "targets",
}


if not TYPE_CHECKING:  # a type checker would take any name for granted

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
