"""The management API at `/api/v1/`: what operators see and do in the admin, for their programs.

`door` says who may, `action` ties a right and a description to each route, `paging` reads lists along keys, `problems` is
what every error looks like. The other modules are one noun each: what is shown of it, what may be asked, what may be done.

It reads tables as the admin does, in bounded pieces; what it changes it changes through operations and the store.
"""
