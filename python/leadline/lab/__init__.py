"""Starts and stops a disposable real Ceph. Stands alone: of leadline it knows only the errors."""

from leadline.lab.lab import Lab, open, start
from leadline.lab.spec import LabSpec
from leadline.lab.status import LabStatus

__all__ = ["Lab", "LabSpec", "LabStatus", "open", "start"]
