"""Published clients of other generations and languages, each in an environment of its own that excludes the others."""
