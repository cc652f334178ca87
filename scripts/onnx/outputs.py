"""The two files that an import writes: whole, and both or none."""
import json
import os
import struct
import tempfile

import numpy as np

from faults import ImportFault

TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def safetensors(tensors):
    """The parts of a safetensors file of named arrays: its header, then the arrays' bytes."""
    entries, offset, arrays = {"__metadata__": {"format": "pt"}}, 0, []
    for name, array in tensors:
        if array.dtype.name not in TYPES:
            raise ImportFault(f"tensor '{name}' is of type {array.dtype.name}", "weights are of types " + ", ".join(TYPES),
                              "export the model in float32")
        array = np.ascontiguousarray(array)
        array = array if array.dtype.byteorder != ">" else array.astype(array.dtype.newbyteorder("<"))
        entries[name] = {"dtype": TYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
        arrays.append(array)
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)   # so that the data begin at a multiple of 8 bytes
    yield struct.pack("<Q", len(text)) + text
    for array in arrays:
        yield array.reshape(-1).view(np.uint8).data if array.size else b""


def check(written, read):
    """Refuses names of files that would be written over what is read, or twice."""
    for i, file in enumerate(written):
        for other in written[:i]:
            if os.path.realpath(file) == os.path.realpath(other):
                raise ImportFault(f"'{file}' is to be written twice", "header and weights are two files", "choose another name for one of them")
        for other in read:
            both = os.path.exists(file) and os.path.exists(other)
            if os.path.realpath(file) == os.path.realpath(other) or both and os.path.samefile(file, other):
                raise ImportFault(f"'{file}' is to be written, and is read as well", "what is read stays as it is", "choose another name")
        if os.path.isdir(file):
            raise ImportFault(f"cannot write '{file}': it is a folder", "a new file takes its place when it is whole", "choose another name")


def write(contents):
    """Writes files, pairs of name and parts of the content. Either all of them are new afterwards, or all are as they were."""
    made, saved, moved = [], {}, []
    file = ""
    try:
        for file, parts in contents:
            handle, part = tempfile.mkstemp(prefix=os.path.basename(file) + ".part.", dir=os.path.dirname(os.path.abspath(file)))
            made.append(part)
            with os.fdopen(handle, "wb") as stream:
                for content in parts:
                    stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(part, 0o666 & ~umask())
        for (file, _), part in zip(contents, made):
            if os.path.lexists(file):
                os.replace(file, part + ".old")
                saved[file] = part + ".old"
            os.replace(part, file)
            moved.append(file)
    except OSError as error:
        for name in moved:
            os.unlink(name)
        for name, old in saved.items():
            os.replace(old, name)
        saved = {}
        raise ImportFault(f"cannot write '{file}' ({error.strerror})", "header and weights are written whole, both or none, beside their final names",
                          "choose a folder that exists, allows writing and has room") from None
    finally:
        for part in [*made, *saved.values()]:
            if os.path.lexists(part):
                os.unlink(part)


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
