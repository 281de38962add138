"""How browsers sign in to the hub's pages: one-time links, sessions, a proxy's header. The API knows none of them."""
