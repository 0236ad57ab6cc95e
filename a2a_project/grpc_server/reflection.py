"""The standard reflection service (grpc/grpc, doc/server-reflection.md) over one pool of descriptors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from grpclib.reflection.v1.reflection_pb2 import (
    ErrorResponse,
    ServerReflectionRequest,
    ServerReflectionResponse,
)

from a2a_tasks.bindings.grpc.call import GrpcCall, GrpcStatus, Handler

__all__ = ["NAME", "OLD_NAME", "Reflection"]

NAME, OLD_NAME = "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"


class Reflection:
    """The service: it describes the contents of the pool, and lists the services."""

    def __init__(self, pool: DescriptorPool, services: Sequence[str]) -> None:
        """`services` are listed in this order."""
        self._pool, self._services = pool, services
        self._answers: Mapping[str, Callable[[ServerReflectionRequest], dict[str, Any]]] = {
            "file_by_filename": lambda request: _file(
                pool.FindFileByName(request.file_by_filename)
            ),
            "file_containing_symbol": lambda request: _file(
                pool.FindFileContainingSymbol(request.file_containing_symbol)
            ),
            "file_containing_extension": self._extension,
            "all_extension_numbers_of_type": self._extensions,
            "list_services": self._list,
        }

    @property
    def handlers(self) -> Mapping[bytes, Handler]:
        """The handler by the paths of its rpc: both versions have the same messages."""
        return {f"/{name}/ServerReflectionInfo".encode(): self._info for name in (NAME, OLD_NAME)}

    async def _info(self, call: GrpcCall) -> None:
        while (message := await call.read()) is not None:
            try:
                request = ServerReflectionRequest.FromString(message)
            except DecodeError:
                call.end(GrpcStatus.INVALID_ARGUMENT, "The message cannot be read")
                return
            await call.write(self._answer(request).SerializeToString())

    def _answer(self, request: ServerReflectionRequest) -> ServerReflectionResponse:
        answer = self._answers.get(request.WhichOneof("message_request") or "")
        try:
            found = (
                answer(request)
                if answer
                else _error(GrpcStatus.INVALID_ARGUMENT, "Nothing is asked")
            )
        except KeyError:
            found = _error(GrpcStatus.NOT_FOUND, "There is no such name")
        return ServerReflectionResponse(valid_host=request.host, original_request=request, **found)

    def _list(self, _: ServerReflectionRequest) -> dict[str, Any]:
        return {"list_services_response": {"service": [{"name": name} for name in self._services]}}

    def _extension(self, request: ServerReflectionRequest) -> dict[str, Any]:
        wanted = request.file_containing_extension
        holder = self._pool.FindMessageTypeByName(wanted.containing_type)
        found: Any = self._pool.FindExtensionByNumber(holder, wanted.extension_number)
        return _file(found.file)

    def _extensions(self, request: ServerReflectionRequest) -> dict[str, Any]:
        name = request.all_extension_numbers_of_type
        found = self._pool.FindAllExtensions(self._pool.FindMessageTypeByName(name))
        numbers = sorted(extension.number for extension in found)
        return {
            "all_extension_numbers_response": {
                "base_type_name": name,
                "extension_number": numbers,
            }
        }


def _error(status: GrpcStatus, text: str) -> dict[str, Any]:
    return {"error_response": ErrorResponse(error_code=status, error_message=text)}


def _file(wanted: FileDescriptor) -> dict[str, Any]:
    """Return the file and all its dependencies, itself first."""
    found: dict[str, bytes] = {}
    _collect(wanted, found)
    return {"file_descriptor_response": {"file_descriptor_proto": list(found.values())}}


def _collect(file: FileDescriptor, found: dict[str, bytes]) -> None:
    if file.name not in found:
        found[file.name] = file.serialized_pb
        for needed in file.dependencies:
            _collect(needed, found)
