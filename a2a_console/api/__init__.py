"""The management API at `/api/v1/`: the admin's data and actions for programs, with Django REST Framework.

`authentication` identifies the operator, `viewsets` has the base of all viewsets, which denies actions without a right,
`pagination` reads lists along keys, `exceptions` gives all errors one shape, and `schema` completes the
OpenAPI description. Each other module is a resource: its serializers and its viewset, which `urls` registers.

Rows are read like in the admin, in bounded slices; changes go through operations and the store.
"""
