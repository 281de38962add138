"""The packages that are installed, as the next version: repacked with a higher number, and a default that is new."""

import re
from typing import Final

from tools.field.base import AnyMachine
from tools.field.install import CHECKOUT
from tools.field.page import PAGE, command

_REPACK: Final = r"""
rm -rf /root/newer
mkdir -p /root/newer
for name in $(dpkg-query --show --showformat='${db:Status-Abbrev} ${Package}\n' 'gpuwaste*' | sed -n 's/^ii  *//p'); do
  mkdir /root/newer/$name
  cd /root/newer/$name
  if [ "$name" = gpuwaste ]; then
    dpkg-deb --raw-extract @CHECKOUT@/build/deb/${name}_*.deb tree
    sed -i 's/@DOTTED@-/@NEW@-/g' tree/DEBIAN/control
    site=tree/usr/lib/gpuwaste/python
    mv $site/gpuwaste-@OLD@.dist-info $site/gpuwaste-@NEW@.dist-info
    sed -i 's/^Version: @DOTTED@$/Version: @NEW@/' $site/gpuwaste-@NEW@.dist-info/METADATA
    echo '# A line of the newer version.' >>tree/etc/gpuwaste/gpuwaste.toml
    dpkg-deb -Znone --root-owner-group --build tree /srv/gpuwaste/${name}_@NEW@.deb >/dev/null
  else
    ar x @CHECKOUT@/build/deb/${name}_*.deb
    dpkg-deb --control @CHECKOUT@/build/deb/${name}_*.deb control
    sed -i 's/@DOTTED@-/@NEW@-/g' control/control
    tar --create --file=control.tar --directory=control --owner=0 --group=0 .
    ar rc /srv/gpuwaste/${name}_@NEW@.deb debian-binary control.tar data.tar*
  fi
done
rm -rf /root/newer
@INDEX@
"""
"""Only the first package's files change; of the others the member with the control files is replaced (deb(5))."""


def offer(machine: AnyMachine) -> tuple[str, str]:
    """Put the newer packages into the page's repository; return the version before and the newer one."""
    before = machine.run("gpuwaste --version").split()[1]
    newer = f"{before}.1"
    words = {
        "@DOTTED@": re.escape(before), "@OLD@": before, "@NEW@": newer, "@CHECKOUT@": CHECKOUT,
        "@INDEX@": command(PAGE.read_text(encoding="utf-8"), "index of the repository"),
    }  # fmt: skip
    machine.run(re.sub("|".join(words), lambda found: words[found[0]], _REPACK), timeout_s=240)
    return before, newer
