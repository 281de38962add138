"""The red team's scenes are those of the system tests: agents and hub beside a real Slurm."""

from tests.system.conftest import native

__all__ = ["native"]
