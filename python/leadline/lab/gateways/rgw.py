"""S3: Ceph's RADOS gateway, with one user and one bucket, whose keys stand in a file of their owner's."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
from email.utils import formatdate
from pathlib import Path

from leadline.errors import LabError
from leadline.foreign import parse_json
from leadline.lab.gateways.gateway import Gateway, GatewayPlace, Launch, require_program, write_private

BUCKET = "leadline"
_USER = "leadline"
_DATA_POOL = "default.rgw.buckets.data"
_DATA_PGS = "16"
_REQUEST_DEADLINE_S = 60.0


def credentials(directory: Path) -> Path:
    """The file with the user's keys, in the form of Amazon's tools."""
    return directory / "credentials"


def _prepare(place: GatewayPlace) -> Launch:
    if not credentials(place.directory).exists():
        _make_user(place)
    frontend = f"beast endpoint={place.endpoint}"
    command = [
        require_program("radosgw"), "-f", "-c", str(place.paths.conf), "-n", f"client.{place.name}",
        "--log-to-stderr=true", f"--rgw-frontends={frontend}",
    ]  # fmt: skip
    return Launch(command)


def _make_user(place: GatewayPlace) -> None:
    """Before the server starts, for both make the pools. RGW draws the keys: no command line shows them."""
    answer = place.tool(
        "radosgw-admin", "-c", str(place.paths.conf), "--id", place.name,
        "user", "create", f"--uid={_USER}", f"--display-name={_USER}",
    )  # fmt: skip
    # The first put would make it, with placement groups that are still being made while it is measured.
    place.ceph.run("osd", "pool", "create", _DATA_POOL, _DATA_PGS)
    place.ceph.run("osd", "pool", "application", "enable", _DATA_POOL, "rgw")
    keys = parse_json(answer)["keys"][0]
    access, secret = keys["access_key"], keys["secret_key"]
    text = f"[default]\naws_access_key_id = {access}\naws_secret_access_key = {secret}\n"
    write_private(credentials(place.directory), text)


def _make_bucket(place: GatewayPlace) -> None:
    """A PUT signed in the first of S3's two ways, which needs no more than a date."""
    lines = credentials(place.directory).read_text().splitlines()
    access, secret = (line.partition(" = ")[2] for line in lines[1:3])
    date = formatdate(usegmt=True)
    digest = hmac.new(secret.encode(), f"PUT\n\n\n{date}\n/{BUCKET}".encode(), hashlib.sha1).digest()
    headers = {"Date": date, "Authorization": f"AWS {access}:{base64.b64encode(digest).decode()}"}
    connection = http.client.HTTPConnection(place.spec.address, place.port, timeout=_REQUEST_DEADLINE_S)
    try:
        connection.request("PUT", f"/{BUCKET}", headers=headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise LabError(f"the bucket {BUCKET} could not be made: {error}", "See the gateway's log.") from error
    finally:
        connection.close()
    if status != http.client.OK:
        raise LabError(f"the bucket {BUCKET} could not be made: HTTP {status}", "See the gateway's log.")


GATEWAY = Gateway(
    name="rgw",
    words="S3 server RADOS gateway",
    programs={"radosgw": "radosgw", "radosgw-admin": "radosgw"},
    plugins={},
    capabilities={"mon": "allow rw", "osd": "allow rwx", "mgr": "allow rw"},
    prepare=_prepare,
    finish=_make_bucket,
)
