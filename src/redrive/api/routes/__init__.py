"""The routes, one module per noun; each has its `router`."""
