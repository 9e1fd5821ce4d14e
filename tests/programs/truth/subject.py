"""A subject in Python: calls of `os`, and a copy by `shutil` whose bytes are known and whose calls are not."""

import os
import shutil
import sys


def main() -> None:
    file = os.open("data", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(file, b"x" * 5000)
    os.lseek(file, 0, os.SEEK_SET)
    os.read(file, 2000)
    os.pread(file, 3000, 1000)
    os.pwrite(file, b"y" * 700, 100)
    os.preadv(file, [bytearray(100), bytearray(200)], 0)
    os.ftruncate(file, 4000)
    os.fsync(file)
    os.close(file)
    os.rename("data", "other")
    words = [sys.executable, "-S", "-c", "import os; os.close(os.open('made', 65, 420))"]
    assert os.waitpid(os.posix_spawn(sys.executable, words, os.environ), 0)[1] == 0
    os.mkdir("sub")
    os.rmdir("sub")
    os.unlink("other")
    calls = (
        '"open": 2, "write": 1, "lseek": 1, "read": 1, "pread": 1, "pwrite": 1, "preadv2": 1, "ftruncate": 1, '
        '"fsync": 1, "close": 2, "rename": 1, "mkdir": 1, "rmdir": 1, "unlink": 1'
    )
    print(f'{{"bytes_read": 5300, "bytes_written": 5700, "calls": {{{calls}}}}}')


def copy() -> None:
    with open("from", "wb", buffering=0) as file:
        file.write(b"z" * 100_000)
    shutil.copyfile("from", "to")
    print('{"bytes_read": 100000, "bytes_written": 200000, "calls": {}}')


if __name__ == "__main__":
    copy() if "copy" in sys.argv else main()
