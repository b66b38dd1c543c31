"""The extension as a .vsix file, which VS Code installs: a zip with the extension's files and a manifest. `npm run
package` makes the same with Microsoft's own program; a test compares the two."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from ..node import FOLDER as NODE
from . import FOLDER

TYPES = {
    ".js": "application/javascript",
    ".json": "application/json",
    ".md": "text/markdown",
    ".vsixmanifest": "text/xml",
}
"""Media types by the ending of a file's name."""

_PACKED_AT = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can name: the same files give the same bytes


def write_vsix(folder: Path) -> Path:
    """Write `memd-VERSION.vsix` into a folder and return its path. Raises OSError."""
    package = json.loads((FOLDER / "package.json").read_bytes())
    path = folder / f"memd-{package['version']}.vsix"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _contents(package):
            archive.writestr(zipfile.ZipInfo(name, _PACKED_AT), content, zipfile.ZIP_DEFLATED)
    return path


def _contents(package: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and bytes of each file."""
    yield "extension.vsixmanifest", _manifest(package).encode()
    yield "[Content_Types].xml", _content_types().encode()
    yield "extension/package.json", (FOLDER / "package.json").read_bytes()
    yield "extension/readme.md", (FOLDER / "README.md").read_bytes()
    for folder, inside in ((FOLDER, "extension"), (NODE, "extension/client")):
        for file in sorted(folder.glob("*.js")):
            yield f"{inside}/{file.name}", file.read_bytes()


def _manifest(package: dict[str, Any]) -> str:
    """Return the manifest, which repeats what VS Code's tools read of `package.json`."""
    id, version, publisher = (quoteattr(package[name]) for name in ("name", "version", "publisher"))
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={id} Version={version} Publisher={publisher}/>
    <DisplayName>{escape(package["displayName"])}</DisplayName>
    <Description xml:space="preserve">{escape(package["description"])}</Description>
    <Tags>{escape(",".join(package["keywords"]))}</Tags>
    <Categories>{escape(",".join(package["categories"]))}</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={quoteattr(package["engines"]["vscode"])}/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value={quoteattr(",".join(package["extensionKind"]))}/>
      <Property Id="Microsoft.VisualStudio.Code.ExecutesCode" Value="true"/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/readme.md" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def _content_types() -> str:
    rows = "".join(f'<Default Extension="{ending}" ContentType="{type}"/>' for ending, type in TYPES.items())
    namespace = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{namespace}">{rows}</Types>\n'
