"""`docs/reports/frameworks.md`: the figures of the last campaign on each backend, from what is kept under `var/faults`."""


def name_part(backend):
    return f"framework-kills-{backend}"


def write():
    pass
