"""curl as a peer for S3: one process and one connection that moves many objects, each request signed.

Its configuration holds the keys, so that it is in a file that only its owner reads.
"""

from __future__ import annotations

import os
from pathlib import Path

# Of the payload no digest is made; the request is signed all the same (AWS's signature, version 4).
_UNSIGNED = 'header = "x-amz-content-sha256: UNSIGNED-PAYLOAD"'


def curl_command(place: Path, endpoint: str, bucket: str, verb: str, file: Path, count: int) -> list[str]:
    """One curl that puts `file` as so many objects, or gets the same; `place` takes its configuration."""
    keys = _keys()
    parts = []
    for number in range(count):
        url = f"http://{endpoint}/{bucket}/bench-curl-{file.name}-{number}"
        way = f'upload-file = "{file}"' if verb == "put" else 'output = "/dev/null"'
        signed = f'user = "{keys}"\naws-sigv4 = "aws:amz:us-east-1:s3"\n{_UNSIGNED}'
        parts.append(f'url = "{url}"\n{way}\n{signed}\nsilent\nshow-error\nfail\n')
    path = place / f"curl-{verb}-{file.name}-{count}"
    path.touch(mode=0o600)
    path.write_text("next\n".join(parts))
    return ["curl", "--config", str(path)]


def _keys() -> str:
    lines = Path(os.environ["AWS_SHARED_CREDENTIALS_FILE"]).read_text().splitlines()
    found = dict(line.replace(" ", "").split("=", 1) for line in lines if "=" in line)
    return f"{found['aws_access_key_id']}:{found['aws_secret_access_key']}"
