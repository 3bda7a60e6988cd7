"""Files that are either whole or not there, and what is in them: text, JSON, tensors."""

from typing import TYPE_CHECKING

from statewise.lazy import lazy_imports

if TYPE_CHECKING:
    from statewise.files.atomic import atomic_file, locked, read_object, write_atomically
    from statewise.files.caches import cache_roots
    from statewise.files.strict_json import encode_number, read_json, strict
    from statewise.files.tensor_file import TensorFile, read_document, read_tensors, write_tensors

__all__ = [
    "TensorFile",
    "atomic_file",
    "cache_roots",
    "encode_number",
    "locked",
    "read_document",
    "read_json",
    "read_object",
    "read_tensors",
    "strict",
    "write_atomically",
    "write_tensors",
]

lazy_imports(__name__)
