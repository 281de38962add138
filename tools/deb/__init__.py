"""Makes Debian packages of the RPMs of this tree: the same files, the same scriptlets, apt's form; then lintian."""
