"""Builds the RPMs of gpuwaste: sources and wheels first, with the network, then rpmbuild and rpmlint without it."""
