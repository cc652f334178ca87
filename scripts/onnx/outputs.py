"""The two files that an import writes: whole, and both or none."""
import json
import os
import shutil
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
    planned = []   # names of files, of their new content, and of a copy of the old
    file = ""
    try:
        for file, parts in contents:
            handle, part = tempfile.mkstemp(prefix=os.path.basename(file) + ".part.", dir=os.path.dirname(os.path.abspath(file)))
            planned.append((file, part, part + ".old"))
            with os.fdopen(handle, "wb") as stream:
                for content in parts:
                    stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(part, 0o666 & ~umask())
        for file, part, old in planned:
            if os.path.lexists(file):
                keep(file, old)
            os.replace(part, file)
    except BaseException as error:   # a key that interrupts the program as well
        put_back(planned)
        remove(planned)
        if not isinstance(error, OSError):
            raise
        raise ImportFault(f"cannot write '{file}' ({error.strerror})", "header and weights are written whole, both or none, beside their final names",
                          "choose a folder that exists, allows writing and has room") from None
    remove(planned)


def keep(file, old):
    """Gives a file a second name, or copies it where the file system has no such names. The file itself stays in its place."""
    try:
        os.link(file, old, follow_symlinks=False)
    except OSError:
        shutil.copy2(file, old, follow_symlinks=False)


def put_back(planned):
    """Restores every file that the new content has replaced. Its new content then no longer has the name that it was written under."""
    for file, part, old in planned:
        if os.path.lexists(part):
            continue
        if os.path.lexists(old):
            os.replace(old, file)
        elif os.path.lexists(file):
            os.unlink(file)


def remove(planned):
    for name in (name for _, *others in planned for name in others):
        if os.path.lexists(name):
            os.unlink(name)


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
