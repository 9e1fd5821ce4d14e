"""Large programs natively and traced: they take minutes, so `make test-conformance` alone runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from leadline.tracing.sources import preload

SPAWNS = 100_000

JAVA = """
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
public class Hello {
  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8);
    Path file = Files.write(Path.of("text"), new byte[100000]);
    List<Callable<Integer>> tasks = Collections.nCopies(100, () -> Files.readAllBytes(file).length);
    long sum = 0;
    for (Future<Integer> one : pool.invokeAll(tasks)) sum += one.get();
    pool.shutdown();
    System.gc();
    System.out.println(sum + " " + new ProcessBuilder("sh", "-c", "exit 3").start().waitFor());
    System.exit(4);
  }
}
"""

NODE = """
const fs = require('fs'), { spawnSync } = require('child_process');
const { Worker, isMainThread } = require('worker_threads');
if (!isMainThread) fs.writeFileSync('worker', 'w'.repeat(1000));
else {
  fs.writeFileSync('text', 'x'.repeat(100000));
  new Worker(__filename).on('exit', async () => {
    const all = await Promise.all([...Array(50)].map(() => fs.promises.readFile('text')));
    const sum = all.reduce((sum, one) => sum + one.length, 0);
    console.log(sum, fs.statSync('worker').size, spawnSync('sh', ['-c', 'exit 5']).status);
    process.exit(6);
  });
}
"""

GO = """
package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

func main() {
	var group sync.WaitGroup
	os.WriteFile("text", make([]byte, 100000), 0o644)
	for i := 0; i < 50; i++ {
		group.Add(1)
		go func() { defer group.Done(); os.ReadFile("text") }()
	}
	group.Wait()
	fmt.Println(exec.Command("sh", "-c", "exit 3").Run())
	os.Exit(7)
}
"""

CHROMIUM = (
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--user-data-dir=profile",
    "--dump-dom",
)
PAGE = "data:text/html,<p>hello <script>document.write(6 * 7)</script>"


def run(command: list[str], work: Path, traced: bool) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if traced:
        logs = work / "logs"
        logs.mkdir(exist_ok=True)
        environment = preload.environment(
            logs, segments_bytes=None, memory_bytes=64 << 20, inherited=environment
        )
    return subprocess.run(
        command, cwd=work, env=environment, capture_output=True, text=True, timeout=1800, check=False
    )


@pytest.mark.parametrize(
    ("source", "text", "command"),
    [
        ("Hello.java", JAVA, ["java", "Hello.java"]),
        ("hello.js", NODE, ["node", "hello.js"]),
        ("hello.go", GO, ["go", "run", "hello.go"]),
        ("page", "", [*CHROMIUM, PAGE]),
    ],
    ids=["java", "node", "go", "chromium"],
)
def test_a_large_program_says_traced_what_it_says_natively(
    tmp_path: Path, source: str, text: str, command: list[str]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    (tmp_path / source).write_text(text)
    native, traced = (run(command, tmp_path, traced) for traced in (False, True))
    assert (traced.returncode, traced.stdout) == (native.returncode, native.stdout)
    assert native.stdout


def test_a_hundred_thousand_spawns_leave_no_memory_behind(tmp_path: Path) -> None:
    from test_conformance import compiled

    ended = run([str(compiled()), "as", "spawns", str(SPAWNS), "/bin/true"], tmp_path, traced=True)
    assert (ended.returncode, ended.stdout.strip()) == (0, "0")
