"""How browsers sign in to the hub's pages: one-time links, sessions, a proxy's header. The API uses none of them."""
