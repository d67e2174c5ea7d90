"""A corpus as a job of Ray's, submitted as its users do: `ray job submit`, on a cluster with its dashboard.

Runs where `ray[default]` is installed, which the project itself does not need; what such a job starts is
tested without it in `test_ray_cluster`.
"""

import os
import socket
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import corpus_of_demo as demo
import pytest

from attnscope.results.stored.document import as_npz
from attnscope.verbs.corpus.engine.ray import cluster as clusters

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in ("ray", "aiohttp_cors", "opencensus")),
        reason='the dashboard of Ray is not installed: pip install "ray[default]"',
    ),
]


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address at which a cluster of one node takes jobs."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv(clusters.ADDRESS, raising=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = clusters._folder()
    head = {"num_cpus": 3, "include_dashboard": True, "dashboard_port": port, "temp_dir": str(folder)}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        made.shutdown()
        clusters._remove(folder)


def test_a_submitted_job_measures_what_the_command_does_and_goes_on_after_it_was_stopped(
    dashboard: str, tmp_path: Path
) -> None:
    from ray.job_submission import JobStatus, JobSubmissionClient

    texts, run = tmp_path / "texts.txt", tmp_path / "run"
    texts.write_text("\n".join(f"The old dog sat on table {i} and slept." for i in range(4000)))
    expected = as_npz(demo.measure(texts, tmp_path / "alone"))
    client = JobSubmissionClient(dashboard)
    asked = f"-m demo --measure {demo.MEASURES} -l 0,2 --head 1,4,7 --engine ray --workers 2 -q"
    command = f"{sys.executable} -m attnscope corpus {texts} {asked} --run {run} -o {tmp_path / 'job.npz'}"
    surroundings = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "HF_HUB_OFFLINE": "1"}

    def submitted() -> str:
        return str(client.submit_job(entrypoint=command, runtime_env={"env_vars": surroundings}))

    def until(job: str, *wanted: JobStatus) -> None:
        end = time.monotonic() + 300
        while client.get_job_status(job) not in wanted:
            assert time.monotonic() < end, client.get_job_logs(job)
            assert client.get_job_status(job) is not JobStatus.FAILED, client.get_job_logs(job)
            time.sleep(0.2)

    first = submitted()
    end = time.monotonic() + 300
    while not list(run.glob("parts/*.parquet")):
        assert time.monotonic() < end, client.get_job_logs(first)
        time.sleep(0.1)
    client.stop_job(first)
    until(first, JobStatus.STOPPED)
    assert not (tmp_path / "job.npz").exists(), "it was through before it was stopped"
    second = submitted()
    until(second, JobStatus.SUCCEEDED)
    assert (tmp_path / "job.npz").read_bytes() == expected
    assert demo.everything(run) == demo.everything(tmp_path / "alone")
