"""The packages that are installed, as the next version: repacked with a higher number, and a default that is new."""

import re
from typing import Final

from tools.field.install import CHECKOUT
from tools.field.machine import Machine
from tools.field.page import PAGE, command

_REPACK: Final = r"""
mkdir -p /root/newer
cd /root/newer
for name in $(dpkg-query --show --showformat='${db:Status-Abbrev} ${Package}\n' 'gpuwaste*' | sed -n 's/^ii  *//p'); do
  rm -rf tree
  dpkg-deb --raw-extract @CHECKOUT@/build/deb/${name}_*.deb tree
  sed -i 's/@OLD@-/@NEW@-/g' tree/DEBIAN/control
  if [ "$name" = gpuwaste ]; then
    site=tree/usr/lib/gpuwaste/python
    mv $site/gpuwaste-@OLD@.dist-info $site/gpuwaste-@NEW@.dist-info
    sed -i 's/^Version: @OLD@$/Version: @NEW@/' $site/gpuwaste-@NEW@.dist-info/METADATA
    echo '# A line of the newer version.' >>tree/etc/gpuwaste/gpuwaste.toml
  fi
  dpkg-deb -Znone --root-owner-group --build tree /srv/gpuwaste/${name}_@NEW@.deb >/dev/null
done
rm -rf tree
@INDEX@
"""


def offer(machine: Machine) -> tuple[str, str]:
    """Put the newer packages into the page's repository; return the version before and the newer one."""
    before = machine.run("gpuwaste version").split()[1]
    newer = f"{before}.1"
    script = _REPACK.replace("@OLD@", re.escape(before)).replace(f"gpuwaste-{re.escape(before)}", f"gpuwaste-{before}")
    index = command(PAGE.read_text(encoding="utf-8"), "index of the repository")
    script = script.replace("@NEW@", newer).replace("@CHECKOUT@", CHECKOUT).replace("@INDEX@", index)
    machine.run(script, timeout_s=240)
    return before, newer
