from demo_reading import model, offline, reading  # noqa: F401
