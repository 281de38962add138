"""A recorded run of a site: what the agents and the hub saw at their outer edges, played through the same code."""
