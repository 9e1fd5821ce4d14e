"""fio's job files as studies: what each option becomes, what is refused with its line, what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import SpecError
from leadline.study.fio.document import is_job_file, read_job_file
from leadline.study.fio.job_options import known_options
from leadline.study.kinds import JobOptions
from leadline.study.library import load_study
from leadline.study.study import Study, expand, parse_study


def study_of(text: str, *ignored: str, **environment: str) -> Study:
    return parse_study(read_job_file(text, "a.fio", environment, ignored, Path.read_text))


def options_of(job: str) -> JobOptions:
    """The options of one job, in which only what is tried is written besides its size."""
    return expand(study_of(f"[j]\nsize=1m\n{job}"))[0].options


def error_of(text: str, *ignored: str, **environment: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        study_of(text, *ignored, **environment)
    return caught.value


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("", {"rw": "read", "bs": 4096, "direct": False, "iodepth": 1, "numjobs": 1, "size": 1 << 20}),
        ("readwrite=randwrite\nblocksize=8K", {"rw": "randwrite", "bs": 8192, "end_fsync": False}),
        ("rw=randrw\nrwmixwrite=30\nbs=4k,64k", {"rwmixread": 70, "bs": (4096, 65536)}),
        ("rw=write\nbs=4k,64k", {"bs": 65536}),
        ("rw=read\nbs=0x2000", {"bs": 8192}),
        ("ioengine=libaio\niodepth=8\ndirect=1", {"engine": "io_uring", "iodepth": 8, "direct": True}),
        ("ioengine=pvsync\niodepth=8", {"engine": "psync", "iodepth": 1}),
        ("ioengine=mmap\ndirect=1", {"engine": "mmap", "direct": False}),
        ("buffered=0", {"direct": True}),
        ("rate=1m\nnumjobs=3", {"rate": 3 << 20}),
        ("rate_iops=100,50\nrw=write\nnumjobs=2", {"rate_iops": 100.0}),
        ("rate_iops=10\nrate_process=poisson", {"arrival": "poisson"}),
        ("runtime=90\ntime_based\nramp_time=2", {"runtime": 90 * 10**9, "ramp_time": 2 * 10**9}),
        ("runtime=2m\ntime_based=1", {"runtime": 120 * 10**9}),
        ("thinktime=50\nthinktime_blocks=4", {"thinktime": 50_000, "thinktime_blocks": 4}),
        ("filename=common\nnumjobs=2", {"shared": "whole", "numjobs": 2}),
        ("filename=one:two", {"nrfiles": 2}),
        ("filename_format=part.$filenum\nnr_files=2\nnumjobs=3", {"shared": "whole", "nrfiles": 2}),
        ("filename_format=$jobname.$jobnum.$filenum\nnumjobs=3", {"shared": None}),
        ("nrfiles=4\nfilesize=64k\nsize=0x40000", {"nrfiles": 4, "size": 1 << 18}),
        ("nrfiles=4\nfilesize=4k-2m\nsize=4m", {"nrfiles": 4, "size": 4 << 20, "io_size": None}),
        ("nrfiles=2\nfilesize=64k-64k", {"nrfiles": 2, "size": 128 << 10}),
        ("create_on_open=1", {"rw": "read"}),
        ("ramp_time=2", {"ramp_time": None}),
        ("io_size=3m", {"io_size": 3 << 20}),
        ("loops=2", {"io_size": 2 << 20}),
        ("number_ios=10", {"io_size": 40_960}),
        ("number_ios=10\nloops=2", {"io_size": 81_920}),
        ("size=10000", {"size": 8192}),
        ("size=128KiB\nbs=512", {"size": 128_000}),
        ("kb_base=1000\nsize=1MiB\nbs=512", {"size": 1 << 20}),
        ("kb_base=1000\nsize=1m\nbs=512", {"size": 999_936}),
        ("iodepth=1k\nioengine=libaio\ndirect=1", {"iodepth": 1024, "iodepth_batch": 1}),
        ("iodepth=8\nioengine=io_uring\niodepth_batch_submit=4", {"iodepth": 8, "iodepth_batch": 4}),
        ("rw=randrw\nrwmixread=20\nrwmixwrite=30", {"rwmixread": 70}),
        ("rw=randrw\nrwmixwrite=30\nrwmixread=20", {"rwmixread": 20}),
        ("size=64k\nfilesize=32k\nnrfiles=4", {"size": 128 << 10, "io_size": 64 << 10}),
        ("io_size=25%", {"io_size": 1 << 18}),
        ("size=96k\nbs=16k\nio_size=200k", {"io_size": 192 << 10}),
        ("number_ios=1000", {"io_size": None}),
        ("rw=randread\nnorandommap\nsize=10k", {"size": 8192, "io_size": 12_288}),
        ("new_group", {"rw": "read"}),
        ("name=other", {"rw": "read"}),
        ("rw=randread\nnorandommap", {"random_distribution": "random"}),
        ("rw=randread\nrandom_distribution=zipf:1.2", {"random_distribution": "zipf:1.2"}),
        ("rw=randread\npercentage_random=40", {"percentage_random": 40}),
        ("rw=write\nfsync=32\nend_fsync=1", {"fsync": 32, "end_fsync": True}),
        ("rw=write\nzero_buffers", {"buffer_compress_percentage": 100}),
        ("rw=write\nverify=crc32c", {"verify": True}),
        ("rw=write\nverify=crc32c\ndo_verify=0", {"verify": None}),
        ("rw=read\nfsync=32", {"fsync": None}),
        ("rw=write\nfsync_on_close=1", {"end_fsync": True}),
        ("startdelay=5\nexitall", {"rw": "read"}),
        ("offset=64k", {"offset": 65536, "size": (1 << 20) + 65536}),
        ("offset=64k\noffset_increment=8k\nnumjobs=2", {"offset_increment": 8192, "io_size": 1 << 20}),
        ("filename=f\nnumjobs=4\noffset_increment=1m", {"shared": "segmented", "offset_increment": None}),
    ],
)
def test_options_keep_the_meaning_that_fio_gives_them(job: str, expected: Mapping[str, Any]) -> None:
    found = options_of(job)
    assert {key: getattr(found, key) for key in expected} == expected


def test_a_rate_search_takes_the_place_of_a_latency_target() -> None:
    text = "[j]\nsize=1m\nrw=randread\nlatency_target=20000\nlatency_percentile=99\nruntime=2\ntime_based\n"
    search = expand(study_of(text))[0].search
    assert search is not None
    assert (search.latency, search.bound) == ("p99", 20 * 10**6)


@pytest.mark.parametrize(
    ("percentile", "bounded", "note"),
    [
        ("", "p100", ""),  # fio's own default
        ("latency_percentile=100\n", "p100", ""),
        ("latency_percentile=99.99999\n", "p100", "p100, which is stricter than 99.99999"),
        ("latency_percentile=99.5\n", "p99.9", "p99.9, which is stricter than 99.5"),
        ("latency_percentile=50.0\n", "p50", ""),
    ],
)
def test_a_percentile_that_no_search_has_is_the_next_stricter_and_it_is_said(
    percentile: str, bounded: str, note: str
) -> None:
    study = study_of(f"[j]\nsize=1m\nrw=randread\nlatency_target=10ms\n{percentile}runtime=2\ntime_based\n")
    search = expand(study)[0].search
    assert search is not None
    assert search.latency == bounded
    assert any(note and note in one for one in study.notes) == bool(note)


def test_what_is_otherwise_with_a_range_of_sizes_and_a_ramp_is_said() -> None:
    notes = " ".join(study_of("[j]\nnrfiles=4\nfilesize=4k-2m\nramp_time=2\n").notes)
    assert "filesize: 4 files of 1m, the middle of 4k-2m" in notes
    assert "ramp_time: none" in notes


def test_later_global_sections_add_to_earlier_ones_for_the_jobs_behind_them() -> None:
    text = "[global]\nsize=1m\nbs=4k\n[a]\n[global]\nstonewall\nbs=8k\n[b]\n[c]\nbs=16k\n"
    assert [work.options.bs for work in expand(study_of(text))] == [4096, 8192, 16384]


def test_jobs_up_to_a_stonewall_run_at_once() -> None:
    text = "[global]\nsize=1m\ntime_based\nruntime=1\n[a]\n[b]\nrw=write\n[c]\nstonewall\n"
    works = expand(study_of(text))
    assert [(work.name, work.order) for work in works] == [
        ("a.a", "together"),
        ("a.b", "together"),
        ("c", None),
    ]


@pytest.mark.parametrize("differs", ["", "runtime=2\ntime_based\n", "runtime=1\ntime_based\nramp_time=1\n"])
def test_jobs_that_need_not_end_at_once_start_at_once(differs: str) -> None:
    text = f"[a]\nsize=1m\nruntime=1\ntime_based\n[b]\nsize=1m\n{differs}"
    assert {work.order for work in expand(study_of(text))} == {"start_together"}


def test_a_job_is_named_by_its_name_where_it_has_one() -> None:
    text = "[global]\nsize=1m\nname=suite\n[a]\nname=other\n[b]\nstonewall\n"
    assert {work.name for work in expand(study_of(text))} == {"other", "b"}


def test_what_begins_like_global_is_global_as_for_fio() -> None:
    assert [work.name for work in expand(study_of("[globals]\nsize=1m\n[a]\n"))] == ["a"]


def test_kb_base_acts_on_its_own_section_and_later_ones() -> None:
    text = "[global]\nsize=1m\n[a]\nkb_base=1000\nbs=512\nio_size=1k\n"
    options = expand(study_of(text))[0].options
    assert (options.size, options.io_size) == (1 << 20, 1024)  # 1000 bytes in blocks of 512


def test_comments_variables_and_included_files(tmp_path: Path) -> None:
    (tmp_path / "part.inc").write_text("rw=randread ; at random\n# nothing\nbs=${BS}\n")
    job = tmp_path / "a.fio"
    job.write_text("[j]\nsize=1m\ninclude part.inc\n")
    study = load_study(str(job), {"BS": "16k"})
    options = expand(study)[0].options
    assert (options.rw, options.bs) == ("randread", 16384)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "no job"),
        ("[global]\nsize=1m\n", None, "only \\[global\\]"),
        ("size=1m\n", 1, "before any section"),
        ("[a\n", 1, "no section"),
        ("[a]b\n", 1, "no section"),
        ("[ ]\n", 1, "no name"),
        ("[a]\nsize=1q\n", 2, "not a size"),
        ("[a]\nsize=10%\n", 2, "share of a file"),
        ("[a]\nrw=read\n", 1, "does not say its size"),
        ("[a]\nsize=1k\n", 2, "does not hold a block"),
        ("[a]\nsize=1m\nrw=read:8k\n", 3, "offset between operations"),
        ("[a]\nsize=1m\nioengine=rbd\n", 3, "no engine 'rbd'"),
        ("[a]\nsize=1m\nclientname=x\nioengine=rbd\n", 4, "no engine 'rbd'"),
        ("[a]\nsize=1m\nbsrange=1k-4k\n", 3, "not supported.*bssplit"),
        ("[a]\nsize=1m\nexec_prerun=rm\n", 3, "runs no shell"),
        ("[a]\nsize=1m\nthinktime_blok=2\n", 3, "does not know"),
        ("[a]\nsize=1m\nfilename=/dev/sda\n", 3, "is a device"),
        ("[a]\nsize=1m\nruntime=5x\ntime_based\n", 3, "not a time"),
        ("[a]\nsize=1m\nruntime=1min\ntime_based\n", 3, "not a time that fio reads whole"),
        ("[a]\nsize=1m\nruntime=1.5s\ntime_based\n", 3, "not a time that fio reads whole"),
        ("[a]\nsize=1.5m\n", 2, "not a size that fio reads whole"),
        ("[a]\nsize=64 k\n", 2, "not a size that fio reads whole"),
        ("[a]\nsize=9999p\n", 2, "larger than a file"),
        ("[a]\nsize=1m\nbs=4KiB\n", 3, "4000 bytes are no operation"),
        ("[a]\nsize=1m\nbs=0\n", 3, "0 bytes are no operation"),
        ("[a]\nsize=1m\nbssplit=4k/50:0/50\n", 3, "0 bytes are no operation"),
        ("[a]\nsize=1m\nkb_base=1001\n", 3, "neither 1000 nor 1024"),
        ("[a]\nSIZE=1m\n", 2, "does not know"),
        ("[a]\nfilesize=10k\n", 2, "not of whole blocks"),
        ("[a]\nsize=1m\nfilesize=1m\nio_size=50%\n", 4, "share of size"),
        ("[a]\nsize=1m\n[b]\nsize=1m\nstartdelay=5\n", 5, "with other jobs"),
        ("[a]\nsize=1m\n[b]\nsize=1m\nexitall\n", 5, "would end all jobs"),
        ("[a]\nsize=8*$mb_memory\n", 2, "of the host on which fio runs"),
        ("[global]\nfilename=a\n[a]\nsize=1m\nfilename=b\n", 5, "adds to that of line 2"),
        ("[a]\nsize=1m\nnumjobs=many\n", 3, "no whole number"),
        ("[a]\nsize=1m\ntime_based=maybe\n", 3, "neither 0 nor 1"),
        ("[a]\nsize=1m\nrw=randrw\nrwmixread=300\n", 4, "no percentage"),
        ("[a]\nsize=1m\nrw=randrw\nrate=1m\n", 4, "each direction"),
        ("[a]\nsize=1m\nbs=${NOT_SET}\n", 3, "no variable 'NOT_SET'"),
        ("[a]\nsize=1m\n\0\n", 3, "NUL"),
        ("[a]\nsize=1m\nbs=" + "4" * 5000, 3, "longer than"),
        ("[a]\nsize=1m\n" * 10_000, 4001, "more than 2000 jobs"),
        ("#" * (257 << 10), None, "larger than 256 KiB"),
        ("[a]\nsize=1m\nlatency_target=20000\nlatency_percentile=101\n", 4, "is no percentile"),
        ("[a]\nnrfiles=4\nfilesize=2m-4k\n", 3, "ends before it begins"),
        ("[a]\nnrfiles=4\nfilesize=4k-many\n", 3, "not a size that fio reads whole"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_line(text: str, line: int | None, words: str) -> None:
    error = error_of(text)
    assert error.line == line, error
    with pytest.raises(SpecError, match=words):
        raise error


def test_a_contradiction_that_a_study_refuses_names_the_line_of_the_job_file() -> None:
    error = error_of("[a]\nsize=1m\nioengine=mmap\nrw=read\nthinktime=5\nrate=1m\n")
    assert (error.source, error.line is not None) == ("a.fio", True)


def test_an_included_file_has_options_only(tmp_path: Path) -> None:
    (tmp_path / "b.fio").write_text("bs=4k\n[b]\n")
    (tmp_path / "a.fio").write_text("[a]\nsize=1m\ninclude b.fio\n")
    with pytest.raises(SpecError, match="begins a section") as caught:
        load_study(str(tmp_path / "a.fio"), {})
    assert caught.value.line == 2


def test_an_included_file_that_includes_the_first_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.fio").write_text("include a.fio\n")
    (tmp_path / "a.fio").write_text("[a]\nsize=1m\ninclude b.fio\n")
    with pytest.raises(SpecError, match="includes itself"):
        load_study(str(tmp_path / "a.fio"), {})


def test_ignored_options_are_left_out_and_said() -> None:
    study = study_of("[a]\nsize=1m\nbsrange=1k-4k\ncpus_allowed=0\n", "bsrange", "cpus_allowed")
    assert study.notes[:2] == [
        "bsrange: left out, as --ignore says",
        "cpus_allowed: left out, as --ignore says",
    ]
    assert "no job has the option 'bsrage'" in str(error_of("[a]\nsize=1m\n", "bsrage"))


def test_what_differs_is_said_once_with_its_jobs() -> None:
    jobs = ("[a]\nwrite_bw_log=x", "[b]\nwrite_bw_log=y", "[c]\nverify=md5\nrw=write")
    text = "[global]\nsize=1m\nstonewall\n" + "\n".join(jobs)
    notes = study_of(text).notes
    assert sum("write_bw_log" in note for note in notes) == 1
    assert any(note.endswith("(a, b)") for note in notes)
    assert any(note.startswith("verify: ") and note.endswith("(c)") for note in notes)


def test_job_files_are_told_from_studies() -> None:
    assert is_job_file("a.fio", "")
    assert is_job_file("jobs", "; x\n\n[global]\nbs=4k\n")
    assert not is_job_file("a.yaml", "[a]\n")
    assert not is_job_file("a", "workloads:\n  a: {rw: read}\n")
    with pytest.raises(SpecError, match="is for job files"):
        load_study("quick", {}, ignored=("bs",))


def test_each_option_of_the_table_is_there_once_and_says_what_it_must() -> None:
    for name, known in known_options().items():
        assert name == name.lower()
        assert bool(known.words) == (known.how in ("differs", "kept_on", "refused")), name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rw=randread\ntime_based\nruntime=1\ninvalidate=0", {"invalidate"}),
        ("rw=write\nioengine=libaio\niodepth=8", {"iodepth"}),
        ("rw=write\nioengine=libaio\niodepth=8\ndirect=1", set()),
        ("rw=write\nioengine=io_uring\niodepth=8", set()),
        ("rw=write\niomem=mmaphuge", {"iomem"}),
        ("rw=write\niomem=malloc", set()),
    ],
)
def test_what_the_page_cache_and_memory_make_of_a_job_is_said(text: str, said: set[str]) -> None:
    notes = study_of(f"[a]\nsize=1m\n{text}\n").notes
    assert {"invalidate", "iodepth", "iomem"} & {note.partition(":")[0] for note in notes} == said


@pytest.mark.parametrize(
    ("text", "said"), [("direct=1", True), ("direct=0", False), ("direct=1\nioengine=psync", False)]
)
def test_where_no_engine_is_named_its_own_one_is_said(text: str, said: bool) -> None:
    notes = study_of(f"[a]\nsize=1m\n{text}\n").notes
    assert any("none is named" in note for note in notes) == said


@pytest.mark.parametrize(
    ("first", "second", "over"),
    [
        ("filename=one\nrw=read", "filename=one\nrw=write", [False, True]),
        ("filename=one\nrw=write", "filename=two:one\nrw=randwrite\nsize=2m", [False, True]),
        ("filename=one\nrw=write", "filename=one\nrw=read", [True, False]),  # what is read is laid out first
        ("filename=one\nrw=write", "filename=two\nrw=write", [False, False]),
    ],
)
def test_a_file_that_another_job_has_too_is_written_over(first: str, second: str, over: list[bool]) -> None:
    study = study_of(f"[global]\nsize=1m\n[a]\n{first}\n[b]\nstonewall\n{second}\n")
    assert [bool(getattr(work, "overwrite", None)) for work in study.workloads.values()] == over
    assert any("another job has this file" in note for note in study.notes) == (True in over)


def test_files_that_no_name_joins_are_each_jobs_own() -> None:
    for names in ("", "filename_format=$jobname.$jobnum\n", "filename_format=\n"):
        study = study_of(f"[global]\nsize=1m\n{names}[a]\nrw=read\n[b]\nstonewall\nrw=write\n")
        assert not any(getattr(work, "overwrite", None) for work in study.workloads.values()), names
    study = study_of(
        "[global]\nsize=1m\nfilename_format=f.$filenum\n[a]\nrw=read\n[b]\nstonewall\nrw=write\n"
    )
    assert [bool(getattr(work, "overwrite", None)) for work in study.workloads.values()] == [False, True]


@pytest.mark.parametrize(
    ("text", "drops"),
    [
        ("rw=randread\ntime_based\nruntime=1", True),
        ("rw=randrw\nloops=2", True),
        ("rw=randread\ntime_based\nruntime=1\ninvalidate=0", False),
        ("rw=randread\ntime_based\nruntime=1\ndirect=1", False),
        ("rw=write\ntime_based\nruntime=1", True),
        ("rw=randwrite\nloops=2\ninvalidate=0", False),
        ("rw=randwrite", False),
        ("rw=randread", False),
    ],
)
def test_cached_pages_are_dropped_where_fio_drops_them(text: str, drops: bool) -> None:
    (work,) = study_of(f"[a]\nsize=1m\n{text}\n").workloads.values()
    assert bool(getattr(work, "invalidate", None)) == drops, work


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("rw=randrw\nbssplit=4k/50:8k/50", True),
        ("rw=randrw\nbs=4k,8k", True),
        ("rw=randread\nbs=4k,8k", False),
        ("rw=randrw\nbssplit=4k/50:8k/50\nnorandommap", False),
        ("rw=randrw\nbssplit=4k/50:8k/50\npercentage_random=50", False),
        ("rw=rw\nbssplit=4k/50:8k/50", False),
    ],
)
def test_several_sizes_share_one_map_where_fio_has_one(text: str, shared: bool) -> None:
    (work,) = study_of(f"[a]\nsize=1m\n{text}\n").workloads.values()
    assert bool(getattr(work, "one_map", None)) == shared, work
