"""A worker is started for every trial: what it loads before it obeys is kept small."""

from __future__ import annotations

import subprocess
import sys

from leadline.run import worker
from leadline.workloads.application.job import ApplicationJob
from leadline.workloads.pipeline.job import PipelineJob

HEAVY = ("pydantic", "numpy", "pyarrow", "leadline.workloads", "leadline.study", "leadline.store")


def test_a_worker_loads_no_library_and_no_kind_of_work_before_it_is_asked() -> None:
    code = "import sys; import leadline.run.worker; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(done.stdout.split())


def test_it_knows_the_jobs_of_programs_by_their_own_formats() -> None:
    formats = worker._APPLICATION, worker._PIPELINE
    assert formats == (ApplicationJob.engine_format, PipelineJob.engine_format)
