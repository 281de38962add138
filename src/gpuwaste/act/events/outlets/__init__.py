"""The outlets: each file is one transport; every file in this directory is loaded."""
