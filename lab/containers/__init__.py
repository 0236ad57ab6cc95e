"""The image is built and the compose file is run without an engine: by namespaces of Linux."""
