"""Settings as files of other tools: what each holds, escapes and leaves out, and what tools say."""

from __future__ import annotations

import contextlib
import json
import random
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from made_proved import random_proved
from made_studies import store
from ruamel.yaml import YAML

from leadline.cli.main import run_command_line
from leadline.errors import UsageError
from leadline.mounting.plan import NewMount, Option
from leadline.observe.mounts.mountinfo import parse_mountinfo
from leadline.store.reader import open_result
from leadline.tuning.emitting import asking
from leadline.tuning.emitting.delivery import AskedValue, Emission, Rendered, carriers, evidence_of
from leadline.tuning.emitting.mounts import present_mount
from leadline.tuning.emitting.tools import TUNING_FORMATS, bundle, holds_already
from leadline.tuning.settings import Setting, read_settings, settings
from leadline.verdict.findings import proof_of
from leadline.verdict.proofs.detection import ProofOutcome
from leadline.verdict.proofs.messages import VERDICTS

_ROW = (
    "{{title: {title}, roles: [osd], access: {access}, means: m, unit: word, default: d, needs: live, "
    "persist: sysctl, sources: [s], layer: osd{more}}}"
)


def made(name: str, access: str, more: str = "", title: str = "What it is") -> Setting:
    row = _ROW.format(title=json.dumps(title), access=access, more=more)
    return dict(read_settings(f"{name}: {row}\n", "osd.yaml"))[name]


KINDS = {
    "tcp_rmem": made("tcp_rmem", "{kind: sysctl, key: net.ipv4.tcp_rmem}"),
    "rp_filter": made("rp_filter", "{kind: sysctl, key: 'net.ipv4.conf.{interface}.rp_filter'}"),
    "scheduler": made("scheduler", "{kind: sysfs, path: '/sys/block/{device}/queue/scheduler'}"),
    "rps": made("rps", "{kind: sysfs, path: '/sys/class/net/{interface}/queues/rx-*/rps_cpus'}"),
    "huge": made("huge", "{kind: sysfs, path: /sys/kernel/mm/transparent_hugepage/enabled}"),
    "spill": made("spill", "{kind: sysfs, path: /sys/module/ceph/parameters/disable_send_metrics}"),
    "ring": made("ring", "{kind: ethtool, group: ring, name: rx}"),
    "odd": made("odd", "{kind: ethtool, group: rss, name: equal}"),
    "shards": made("shards", "{kind: ceph_config, who: osd, option: osd_op_num_shards}"),
    "compression": made("compression", "{kind: ceph_pool, option: compression_mode}"),
    "max_mds": made("max_mds", "{kind: ceph_fs, option: max_mds}"),
    "noout": made("noout", "{kind: ceph_flag, flag: noout}"),
    "big_writes": made("big_writes", "{kind: fuse, option: fuse_big_writes}"),
    "fuse_own": made("fuse_own", "{kind: fuse, option: max_read}"),
    "rasize": made("rasize", "{kind: mount, option: rasize}"),
    "noatime": made("noatime", "{kind: mount, option: noatime}"),
    "pin": made("pin", "{kind: xattr, name: ceph.dir.pin}"),
    "mitigations": made(
        "mitigations",
        "{kind: cmdline, parameter: mitigations}",
        ", prices: [{kind: security, words: no guard}]",
    ),
    "firmware": made("firmware", "{kind: by_hand, words: in the setup of the machine}"),
}
MOUNT = NewMount("10.0.0.1:3300:/", "/mnt/my files", (Option("name=media", ""), Option("_netdev", "")))
ALL = (
    "tcp_rmem=4096 131072 8388608",
    "rp_filter@eth0.5=2",
    "scheduler@sda=none",
    "huge=never",
    "spill=1",
    "ring@eth0=4096",
    "shards=8",
    "compression@data=none",
    "max_mds@fs=2",
    "noout=false",
    "big_writes=true",
    "rasize@/mnt/my files=67108864",
    "pin@/mnt/a b=1",
    "mitigations=off",
)


def emission(*words: str, known: dict[str, Setting] = KINDS) -> Emission:
    return Emission(tuple(asking.parse_pair(word, known) for word in words), {MOUNT.mount_point: MOUNT})


def render(form: str, *words: str) -> Rendered:
    return TUNING_FORMATS[form](emission(*words))


def text_of(form: str, *words: str, number: int = 0) -> str:
    return render(form, *words).files[number].text


def lines(text: str) -> list[str]:
    """Without comments and empty lines."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def why(form: str, word: str) -> str:
    found = render(form, word)
    assert not found.files
    return found.left_out[0].why


# What was asked


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("net.core.rmem_maxx=1", "did you mean net.core.rmem_max"),
        ("net.core.rmem_max=1", "out of range"),
        ("net.core.rmem_max=4294967296", "out of range"),
        ("net.core.rmem_max=nan", "no number"),
        ("net.core.rmem_max=1_0000", "no number"),
        ("net.core.rmem_max=", "empty"),
        ("net.core.rmem_max=4096\nkernel.panic=1", "control"),
        ("net.core.rmem_max=4096\u202e", "control"),
        ("net.core.rmem_max", "no value"),
        ("net.core.rmem_max@=4096", "names nothing"),
        ("net.core.rmem_max@a\x1bb=4096", "no place"),
    ],
)
def test_a_value_that_cannot_be_is_refused(word: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        asking.parse_pair(word, settings())


def test_a_word_of_a_list_is_one_of_it() -> None:
    known = {"mode": made("mode", "{kind: sysctl, key: a.b}", ", one_of: [none, force]")}
    assert asking.parse_pair("mode=force", known).value == "force"
    with pytest.raises(UsageError, match="did you mean force"):
        asking.parse_pair("mode=forc", known)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("net.core.rmem_max=4M", "4194304"),
        ("net.core.rmem_max=4194304", "4194304"),
        ("net.ipv4.tcp_rmem=4k 128k 6M", "4096 131072 6291456"),
    ],
)
def test_sizes_are_taken_as_a_proof_takes_them(word: str, value: str) -> None:
    assert asking.parse_pair(word, settings()).value == value


def test_a_subject_may_hold_what_separates() -> None:
    found = asking.parse_pair("pin@/mnt/a=b@c=1", KINDS)
    assert (found.subject, found.value) == ("/mnt/a=b@c", "1")


def test_a_plan_is_read_as_its_changes() -> None:
    rows = [
        {"setting": "max_mds", "value": 2, "place": {"subject": "fs", "host": ""}},
        {"setting": "noout", "value": True},
    ]
    for text in (json.dumps(rows), json.dumps({"changes": rows})):
        found = asking.parse_plan(text, "plan", KINDS)
        assert [one.words for one in found] == ["max_mds@fs=2", "noout=true"]
    with pytest.raises(UsageError, match="change 1"):
        asking.parse_plan('[{"setting": "noout"}]', "plan", KINDS)
    with pytest.raises(UsageError, match="no changes"):
        asking.parse_plan("{}", "plan", KINDS)


def test_what_contradicts_or_excludes_is_refused() -> None:
    with pytest.raises(UsageError, match="contradict"):
        asking.check_together(emission("noout=true", "noout=false").asked)
    asking.check_together(emission("max_mds@a=1", "max_mds@b=2").asked)
    other = KINDS | {"x": made("x", "{kind: sysctl, key: a.b}", ", excludes: [noout]")}
    with pytest.raises(UsageError, match="exclude each other"):
        asking.check_together(emission("x=1", "noout=true", known=other).asked)


# Evidence


def test_only_what_helps_by_its_mechanism_is_proved() -> None:
    found = (
        *evidence_of([("shards", "8")], "helps", "12 % more", "result"),
        *evidence_of([("noout", "true")], "nothing", "", "result"),
    )
    asked = tuple(asking.parse_pair(word, KINDS, found) for word in ("shards=8", "noout=true", "huge=never"))
    kept, left = asking.only_proved(asked)
    assert [one.words for one in kept] == ["shards=8"]
    assert [(one.asked, one.why) for one in left] == [
        ("noout=true", "nothing"),
        ("huge=never", "no proof of it was given"),
    ]
    assert "# evidence: helps: 12 % more (result)" in TUNING_FORMATS["ceph"](Emission(kept, {})).files[0].text
    together = evidence_of([("shards", "8"), ("noout", "true")], "helps", "12 % more", "result")
    assert not any(one.proved for one in together)
    other = asking.parse_pair("shards=16", KINDS, found)  # proved was another value
    assert other.evidence is None


def proof_at(place: Path, wanted: str) -> Path:
    """A stored proof of osd_op_num_shards=8 of which verdicts say what is wanted."""
    for seed in range(200):
        proof = random_proved(random.Random(seed))  # noqa: S311 - made data, no secret
        proof.details["proof"]["settings"][0] |= {"setting": "osd_op_num_shards", "value": "8"}
        stored = store(proof, place / str(seed))
        found = proof_of(open_result(stored))
        if found is not None and found.outcome == wanted:
            return stored
    raise AssertionError(f"no seed gives {wanted}")


@pytest.mark.parametrize(("wanted", "code"), [("helps", 0), ("nothing", 3), ("not_by_mechanism", 3)])
def test_what_a_stored_proof_says_decides_what_is_written(
    wanted: ProofOutcome, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = str(proof_at(tmp_path, wanted))
    words = ("tune", "emit", "osd_op_num_shards=8", "--format", "ceph", "--only", "proved", "--from", proof)
    assert run_command_line([*words]) == code
    said = capsys.readouterr()
    if wanted == "helps":
        assert "evidence: helps: osd_op_num_shards=8 helps: " in said.out
    else:
        assert "osd_op_num_shards = 8" not in said.out
        assert f"left out: osd_op_num_shards=8: {VERDICTS[wanted]}" in said.err


def test_prices_are_said_and_no_comment_ends_early() -> None:
    assert "# trade-off, security: no guard" in text_of("grub", "mitigations=off")
    evil = made("evil", "{kind: sysctl, key: a.b}", title="title\nkernel.panic = 1\u2028x")
    text = TUNING_FORMATS["sysctl"](Emission((AskedValue(evil, "1"),), {})).files[0].text
    assert lines(text) == ["a.b = 1"]


# Formats


def test_each_kind_is_held_by_the_formats_that_are_named() -> None:
    words = (*ALL, "rps@eth0=f", "odd@eth0=4", "fuse_own=1", "firmware=x", "noatime@/mnt/my files=on")
    for word in words:
        for form in TUNING_FORMATS:
            found = render(form, word)
            named = form in carriers(asking.parse_pair(word, KINDS).setting)
            if not named:
                assert not found.files, (form, word)
                assert form not in found.left_out[0].formats
            else:
                assert bool(found.files) != bool(found.left_out), (form, word)


def test_the_management_tools_hold_all_that_any_native_format_does() -> None:
    for form in ("salt", "ansible", "puppet"):
        assert render(form, *ALL).left_out == ()


def test_sysctl() -> None:
    text = text_of("sysctl", *ALL)
    assert lines(text) == ["net.ipv4.tcp_rmem = 4096 131072 8388608", "net/ipv4/conf/eth0.5/rp_filter = 2"]


def test_udev_matches_what_was_named_and_nothing_odd() -> None:
    assert lines(text_of("udev", "scheduler@sda=none", "ring@eth0=4096")) == [
        'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="sda", ATTR{queue/scheduler}="none"',
        'ACTION=="add|change", SUBSYSTEM=="net", NAME=="eth0", RUN+="/usr/sbin/ethtool -G $name rx 4096"',
    ]
    assert 'KERNEL!="loop*|ram*|zram*|sr*|fd*"' in text_of("udev", "scheduler=none")
    assert 'ATTR{queue/scheduler}="a$$b%%c"' in text_of("udev", "scheduler=a$b%c")
    for odd in ('sd"a', "sd|a", "sd a", "sd[a]", "$x"):
        assert "no name of a device" in why("udev", f"scheduler@{odd}=none")
    assert "no escape" in why("udev", 'scheduler=a"b')
    assert "one plain word" in why("udev", "ring@eth0=1 tx 2")


def test_tuned() -> None:
    found = lines(text_of("tuned", *ALL))
    for line in (
        "net.ipv4.tcp_rmem=4096 131072 8388608",
        "/sys/block/sda/queue/scheduler=none",
        "devices=eth0",
        "ring=rx 4096",
        "cmdline_leadline_mitigations=+ mitigations=off",
    ):
        assert line in found
    assert "no escape" in why("tuned", "huge=${x}")


def test_boot_and_modules() -> None:
    assert lines(text_of("modprobe", "spill=1")) == ["options ceph disable_send_metrics=1"]
    assert lines(text_of("grub", "mitigations=off")) == [
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX mitigations=off"'
    ]
    for evil in ('off"; reboot; "', "off$(reboot)", "off`reboot`", "off init=/bin/sh"):
        assert "no escape" in why("grub", f"mitigations={evil}")
    assert "no escape" in why("modprobe", "spill=1 dangerous=1")


def test_grub_takes_the_file_in(tmp_path: Path) -> None:
    file = tmp_path / "grub.cfg"
    file.write_text("GRUB_CMDLINE_LINUX=quiet\n" + text_of("grub", "mitigations=off"))
    done = subprocess.run(
        ["sh", "-c", '. "$1"; printf %s "$GRUB_CMDLINE_LINUX"', "sh", str(file)],
        check=True,
        capture_output=True,
    )
    assert done.stdout == b"quiet mitigations=off"


def test_ceph_has_a_file_of_options_and_commands_for_the_rest() -> None:
    conf, commands = render("ceph", *ALL).files
    assert lines(conf.text) == ["[osd]", "osd_op_num_shards = 8", "[client]", "fuse_big_writes = true"]
    assert [shlex.split(line) for line in lines(commands.text)[1:]] == [
        ["ceph", "osd", "pool", "set", "data", "compression_mode", "none"],
        ["ceph", "fs", "set", "fs", "max_mds", "2"],
        ["ceph", "osd", "unset", "noout"],
        ["setfattr", "-n", "ceph.dir.pin", "-v", "1", "/mnt/a b"],
    ]
    assert "needs its pool" in why("ceph", "compression=none")
    assert "no name that Ceph" in why("ceph", "compression@-data=none")
    assert "neither true nor false" in why("ceph", "noout=maybe")
    assert "begins as an option" in why("ceph", "shards=--force")
    for odd in ("a#b", "a;b", 'a"b', "[x]"):
        (commands,) = render("ceph", f"shards={odd}").files
        assert shlex.split(lines(commands.text)[-1])[-1] == odd
    masked = render("ceph", "shards@osd/class:ssd=8").files
    assert "ceph config set osd/class:ssd osd_op_num_shards 8" in masked[0].text


@pytest.mark.parametrize("value", ["8", "a b", "a/b:c,d"])
def test_ceph_reads_the_options_as_they_were_meant(value: str, tmp_path: Path) -> None:
    if not shutil.which("ceph-conf"):
        pytest.skip("ceph-common is not installed")
    file = tmp_path / "conf"
    file.write_text(text_of("ceph", f"shards={value}"))
    done = subprocess.run(
        ["ceph-conf", "-c", str(file), "-s", "osd", "--lookup", "osd_op_num_shards"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == value


def test_cephadm_has_the_kernel_settings_as_a_profile() -> None:
    found = YAML(typ="safe").load(text_of("cephadm", *ALL))
    assert found["settings"]["net.ipv4.tcp_rmem"] == "4096 131072 8388608"
    assert found["placement"] == {"host_pattern": "*"}


# Mounts


def test_a_mount_has_all_wanted_options_once() -> None:
    (line,) = lines(text_of("fstab", "rasize@/mnt/my files=67108864", "noatime@/mnt/my files=on"))
    assert line == "10.0.0.1:3300:/ /mnt/my\\040files ceph name=media,_netdev,rasize=67108864,noatime 0 0"
    assert "nothing is mounted" in why("fstab", "rasize@/nowhere=1")
    assert "comma" in why("fstab", "rasize@/mnt/my files=1,suid")


def test_a_present_mount_keeps_what_it_needs_and_no_secret() -> None:
    row = "36 1 0:40 / /mnt/c rw,noatime - ceph 10.0.0.1:/ rw,name=media,secret=<hidden>,acl,wsync\n"
    (mount,) = parse_mountinfo(row)
    assert present_mount(mount).option_text == "name=media,wsync,noatime,_netdev"
    changed = Emission((asking.parse_pair("noatime@/mnt/c=off", KINDS),), {"/mnt/c": present_mount(mount)})
    assert "name=media,wsync,_netdev" in TUNING_FORMATS["fstab"](changed).files[0].text
    (other,) = parse_mountinfo("36 1 0:40 / /mnt/c rw - ext4 /dev/sda rw\n")
    with pytest.raises(UsageError, match="ext4"):
        present_mount(other)


def test_findmnt_finds_the_line_sound(tmp_path: Path) -> None:
    if not shutil.which("findmnt"):
        pytest.skip("no findmnt")
    file = tmp_path / "fstab"
    file.write_text(text_of("fstab", "rasize@/mnt/my files=67108864"))
    shown = subprocess.run(
        ["findmnt", "--tab-file", str(file), "--json", "-o", "SOURCE,TARGET,FSTYPE,OPTIONS"],
        check=True,
        capture_output=True,
    )
    (row,) = json.loads(shown.stdout)["filesystems"]
    assert row["target"] == "/mnt/my files"
    assert row["options"] == "name=media,_netdev,rasize=67108864"


def test_systemd_finds_the_unit_sound(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze")
    (unit, *_) = render("systemd", "rasize@/mnt/my files=67108864").files
    (tmp_path / unit.name).write_text(unit.text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit.name)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert unit.name not in done.stderr
    assert done.returncode == 0, done.stderr


# Tools of configuration management


def test_salt_and_ansible_say_the_same_in_their_words() -> None:
    sls = text_of("salt", *ALL)
    assert sls.startswith("#!yaml\n")
    states = YAML(typ="safe").load(sls)
    assert states["max_mds@fs=2"]["cmd.run"][0] == {"name": "ceph fs set fs max_mds 2"}
    assert states["/mnt/my files"]["mount.mounted"][2]["opts"].endswith("rasize=67108864")
    (play,) = YAML(typ="safe").load(text_of("ansible", *ALL))
    argv = [
        task["ansible.builtin.command"]["argv"] for task in play["tasks"] if task["name"].startswith("Set ")
    ]
    assert [shlex.join(words) for words in argv] == [
        one["cmd.run"][0]["name"]
        for name, one in states.items()
        if "=" in name and "cmd.run" in one and "unless" in one["cmd.run"][1]
    ]


def test_ansible_takes_no_value_for_a_template() -> None:
    text = text_of("ansible", "shards={{ lookup('pipe', 'id') }}")
    assert text.count("!unsafe") == 2
    assert '!unsafe "{{' in text


@pytest.mark.parametrize(
    ("printed", "word", "holds"),
    [
        ("4096\t131072  8388608\n", "tcp_rmem=4096 131072 8388608", True),
        ("4096\t131072\t8388609\n", "tcp_rmem=4096 131072 8388608", False),
        ("compression_mode: none\n", "compression@data=none", True),
        ("compression_mode: nonelse\n", "compression@data=none", False),
        ('{"max_mds":2,"in":[0]}', "max_mds@fs=2", True),
        ('{"max_mds":21,"in":[0]}', "max_mds@fs=2", False),
        ('{"flags_set":["noout"]}', "noout=true", True),
        ('{"flags_set":["noout"]}', "noout=false", False),
        ('{"flags_set":["nooutlet"]}', "noout=false", True),
        ("*", "huge2=*", True),
    ],
)
def test_a_deed_is_skipped_only_where_it_holds(printed: str, word: str, holds: bool, tmp_path: Path) -> None:
    known = KINDS | {"huge2": made("huge2", "{kind: sysctl, key: a.b}")}
    (found,) = bundle(emission(word, known=known), "salt").deeds
    for name in ("sysctl", "ceph"):
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf %s {shlex.quote(printed)}\n")
        (tmp_path / name).chmod(0o755)
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", holds_already(found)], check=False, env=variables, cwd=tmp_path)
    assert (done.returncode == 0) is holds


def test_puppet_quotes_what_ends_a_text() -> None:
    text = text_of("puppet", "shards=it's \\ $x")
    assert "osd_op_num_shards '\\''\"\\'\"" not in text
    assert r"""\'"\'"\'""" in text


# The verb


def run(*words: str) -> int:
    return run_command_line(["tune", "emit", *words])


def test_the_verb_writes_names_what_is_left_and_ends_with_three(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "conf"
    assert run("net.core.rmem_max=4194304", "--format", "sysctl", "-o", str(out)) == 0
    assert "net.core.rmem_max = 4194304" in out.read_text()
    assert run("net.core.rmem_max=4194305", "--format", "sysctl", "-o", str(out)) == 2
    assert "4194304" in out.read_text()
    assert run("net.core.rmem_max=4194305", "--format", "sysctl", "-o", str(out), "--force") == 0
    assert "4194305" in out.read_text()
    capsys.readouterr()
    assert run("net.core.rmem_max=4194304", "--format", "grub") == 3
    said = capsys.readouterr()
    assert not said.out
    assert "as sysctl, tuned, cephadm, salt, ansible, puppet" in said.err
    assert run("net.core.rmem_max=4194304", "--format", "sysctl", "--only", "proved") == 3
    assert "no proof of it was given" in capsys.readouterr().err


def test_a_plan_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tmp_path / "none"), "--format", "sysctl") == 2
    assert "no plan" in capsys.readouterr().err
    (tmp_path / "plan").write_text(json.dumps([{"setting": "net.core.rmem_max", "value": 4194304}]))
    assert run(str(tmp_path / "plan"), "--format", "sysctl") == 0
    assert "net.core.rmem_max = 4194304" in capsys.readouterr().out
    with contextlib.chdir(tmp_path):
        assert run(str(tmp_path / "plan"), "--format", "salt", "--from", str(tmp_path)) == 2
    assert "no result of leadline" in capsys.readouterr().err
