"""Starts and stops a disposable real Ceph. Stands alone: of leadline it knows only the errors."""

from leadline.lab.cluster.process import DIRECTORY
from leadline.lab.lab import Lab, open, start
from leadline.lab.network.members import HOST
from leadline.lab.spec import LabSpec
from leadline.lab.status import LabStatus
from leadline.lab.targets import LabTarget

__all__ = ["DIRECTORY", "HOST", "Lab", "LabSpec", "LabStatus", "LabTarget", "open", "start"]
