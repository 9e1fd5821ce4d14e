"""The conda package of a wheel: tools/packaging/conda/build.py WHEEL DIRECTORY

The Python that runs it has rattler-build. Nothing is fetched: a channel has what the package names.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

RECIPE = Path(__file__).with_name("recipe.yaml")
_PLATFORMS = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}


def build(wheel: Path, directory: Path) -> Path:
    """The file of the package, below `directory`."""
    machine = next(name for name in _PLATFORMS if wheel.name.endswith(f"_{name}.whl"))
    version = wheel.name.split("-")[1]
    with tempfile.TemporaryDirectory() as opened:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(opened)
        config = RenderConfig(
            # It is built here for there: nothing of it is run.
            platform=PlatformConfig(target_platform=_PLATFORMS[machine]),
            extra_context={"version": version, "opened": opened},
        )
        (variant,) = Stage0Recipe.from_file(RECIPE).render(VariantConfig(), config)
        (package,) = variant.run_build(output_dir=directory, channels=[]).packages
    return Path(package)


def main() -> None:
    """Build it, and print its place."""
    sys.stdout.write(f"{build(Path(sys.argv[1]), Path(sys.argv[2]))}\n")


if __name__ == "__main__":
    main()
