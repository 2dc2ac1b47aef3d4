# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Remote persistent memory access over RDMA: librpma from Python.

Each function of librpma.h is a function of this module, without "rpma_" and with the arguments of its manual page, and
a method of the object that is its first argument: rpma_conn_get_cq(3) is conn_get_cq(conn) and conn.get_cq(). Constants
lose "RPMA_"; structures are Work, Sge, Receive, PeerEvent and Completion, and Wc for struct ibv_wc.

- Outputs are results: none (None), one, or a tuple. An error code is an exception, Error or WouldBlock.
- Descriptors and private data are bytes, addresses (host, port), and pointers of libibverbs integers.
- An object belongs to its caller or not as its page says: delete() deletes it, and so does the end of a "with" block.
  Nothing is deleted implicitly, because the order matters. A call that consumes a request leaves it without pointer.
- A memory region refers to a writable buffer, such as a bytearray or mmap, and keeps it from being resized or closed.
- Blocking calls release the interpreter lock. Threads may call as librpma(7) permits it.
- With the library of an older release, the functions that it lacks are missing.

rpma_log_set_function() is missing: its function has variable arguments.
"""

import ctypes
import inspect
import ipaddress
import re
import socket

from . import declarations

_library = ctypes.CDLL("librpma.so.0", use_errno=True)
_last_failure = getattr(_library, "rpma_err_last_failure", None)
_SCALARS = {"int": ctypes.c_int, "unsigned": ctypes.c_uint, "unsigned int": ctypes.c_uint, "bool": ctypes.c_bool,
            "size_t": ctypes.c_size_t, "uint8_t": ctypes.c_uint8, "uint16_t": ctypes.c_uint16, "uint32_t": ctypes.c_uint32,
            "uint64_t": ctypes.c_uint64, "__be32": ctypes.c_uint32, "const char*": ctypes.c_char_p}
_DELETING = "_(delete|dereg|shutdown)$"
_OMITTED = {"rpma_log_set_function"}

globals().update({name.removeprefix("RPMA_"): value for name, value in declarations.CONSTANTS.items()})
_CODES = {value: name for name, value in declarations.CONSTANTS.items() if name.startswith("RPMA_E_")}
_WOULD_BLOCK = {f"RPMA_E_{name}" for name in ("NO_COMPLETION", "NO_EVENT", "AGAIN")}


class Error(Exception):
    """A function returned a code: code, name, errno (of RPMA_E_PROVIDER), and posted, the number of operations or receives
    that the device accepted anyway (None of other functions)."""

    def __init__(self, code, function, error, posted=None):
        self.code, self.name, self.errno, self.posted = code, _CODES.get(code, str(code)), error, posted
        cause = _last_failure(None) if code in declarations.FAILURES and _last_failure else b""
        super().__init__(f"{function}: {self.name}: {(cause or _library.rpma_err_2str(code)).decode().strip()}")


class WouldBlock(Error):
    """There is no completion or event, or the call must be repeated later."""


def _camel(name):
    return "".join(part.capitalize() for part in re.sub("^(rpma|ibv)_", "", name).split("_"))


def _type(name):
    if name.startswith("enum "):
        return ctypes.c_int
    if name.startswith("struct ") and not name.endswith("*"):
        return globals()[_camel(name.removeprefix("struct "))]
    return _SCALARS.get(name) or ctypes.c_void_p


class _Structure(ctypes.Structure):
    """A structure whose members are keyword arguments; sgl takes a list of Sge and sets nsge, too."""

    def __init__(self, **members):
        super().__init__()
        unknown = members.keys() - {name for name, _ in self._fields_}
        if unknown:
            raise TypeError(f"{type(self).__name__} has no member {', '.join(sorted(unknown))}")
        for name, value in members.items():
            if name == "sgl":
                # The instance refers to the array, whose address is all that the member has.
                self._sges = (Sge * len(value))(*value)  # pylint: disable=undefined-variable
                self.nsge, value = len(value), ctypes.addressof(self._sges)
            setattr(self, name, value.pointer if isinstance(value, Handle) else value)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name, _ in self._fields_)})"


for _name, _members in declarations.STRUCTURES.items():
    _base = ctypes.Structure if _name == "rpma_conn_private_data" else _Structure
    globals()[_camel(_name)] = type(_camel(_name), (_base,), {"_fields_": [
        (name, _type(kind) * elements if elements else _type(kind)) for kind, name, elements in _members]})


class Handle:
    """An object of the library; pointer is its address, or None once it is deleted or consumed."""

    def __init__(self, pointer, buffer=None):
        self.pointer, self._buffer = pointer, buffer

    def __eq__(self, other):
        return isinstance(other, Handle) and self.pointer == other.pointer

    def __hash__(self):
        return hash(self.pointer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()

    def delete(self):
        """Deletes the object: rpma_TYPE_delete(3), rpma_mr_dereg(3) or rpma_ep_shutdown(3). Idempotent."""
        cell = ctypes.c_void_p(self.pointer)
        ctypes.set_errno(0)
        code = self._delete(ctypes.byref(cell))
        self.pointer = cell.value  # None of an object that the function has deleted although it failed
        if self.pointer is None:
            self._buffer = None
        _check(code, self._delete.__name__)


def _handle_classes():
    deleting = {rows[0][0]: name for name, (_, rows) in declarations.FUNCTIONS.items()
                if rows and re.search(_DELETING, name)}
    for kind, function in deleting.items():
        name = kind.removeprefix("struct ").removesuffix("**")
        yield name, type(_camel(name), (Handle,), {"_delete": getattr(_library, function, None)})


_HANDLES = dict(_handle_classes())
globals().update({cls.__name__: cls for cls in _HANDLES.values()})


def _check(code, function, posted=None):
    if code < 0:
        raise (WouldBlock if _CODES.get(code) in _WOULD_BLOCK else Error)(code, function, ctypes.get_errno(), posted)


def _handle_of(kind):
    match = re.fullmatch(r"(?:const )?struct (\w+)\*+", kind)
    return _HANDLES.get(match[1]) if match else None


def _address(storage):
    family = int.from_bytes(storage.raw[:2], "little" if socket.htons(1) != 1 else "big")
    if family == socket.AF_UNSPEC:
        return None
    start, length = (4, 4) if family == socket.AF_INET else (8, 16)
    return str(ipaddress.ip_address(storage.raw[start:start + length])), int.from_bytes(storage.raw[2:4], "big")


def _private_data(data):
    return ConnPrivateData(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))  # pylint: disable=undefined-variable


def _array(kind, values):
    element = globals()[_camel(re.search(r"struct (\w+)", kind)[1])]
    return (element * len(values))(*values)


class _Output:
    """A parameter that the function writes: its argument, and the value of the result."""

    def __init__(self, kind):
        self.handle = _handle_of(kind)
        if kind == "struct sockaddr_storage*":
            self.cell = ctypes.create_string_buffer(128)
        else:
            self.cell = _type("void*" if kind.endswith("**") else kind.removesuffix("*"))()
        self.argument = ctypes.byref(self.cell)

    def value(self):
        if self.handle:
            return self.handle(self.cell.value) if self.cell.value else None
        if isinstance(self.cell, ctypes.Array):
            return _address(self.cell)
        if isinstance(self.cell, _Structure):
            return self.cell
        if isinstance(self.cell, ctypes.Structure):
            return ctypes.string_at(self.cell.ptr, self.cell.len) if self.cell.ptr else b""
        return self.cell.value


def _is_output(kind):
    return kind.endswith("*") and not kind.startswith("const ") and kind != "void*" and \
        (kind.endswith("**") or not _handle_of(kind)) and kind != "struct ibv_context*"


# The value of C for a value of Python, by the type of the parameter: (expression, function).
_INPUTS = [
    (r"const struct rpma_(work|receive)\*", _array),
    (r"const struct rpma_conn_private_data\*", lambda _, value: None if value is None else ctypes.byref(_private_data(value))),
    (r"const char\*", lambda _, value: None if value is None else str(value).encode()),
    (r"const char\[8\]", lambda _, value: (ctypes.c_char * 8).from_buffer_copy(value)),
    (r"(const )?struct rpma_\w+\*", lambda _, value: ctypes.c_void_p(None if value is None else value.pointer)),
    (r".*\*", lambda _, value: value if isinstance(value, bytes) else ctypes.c_void_p(value)),
    (r".*", lambda kind, value: _type(kind)(value)),
]
_OPTIONAL = {"cfg", "pdata", "op_context", "srq", "cq", "rcq"}


def _input(kind, value):
    return next(convert(kind, value) for expression, convert in _INPUTS if re.fullmatch(expression, kind))


def _consumes(function, position, kind):
    return position == 0 and kind.endswith("**") and re.search(f"{_DELETING}|_(connect|reject)$", function)


def _function(name):
    result, rows = declarations.FUNCTIONS[name]
    called = getattr(_library, name)
    called.restype = _type(result)
    counts = {number + 1 for number, (kind, _) in enumerate(rows[:-1])
              if re.fullmatch(_INPUTS[0][0], kind) and rows[number + 1][1] == "count"}
    inputs = [number for number, (kind, _) in enumerate(rows)
              if number not in counts and (_consumes(name, number, kind) or not _is_output(kind))]
    parameters, optional = [], True
    for number in reversed(inputs):
        optional = optional and rows[number][1] in _OPTIONAL
        parameters.insert(0, inspect.Parameter(rows[number][1], inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                               default=None if optional else inspect.Parameter.empty))
    signature = inspect.Signature(parameters)

    def wrapper(*args, **kwargs):
        if kwargs or len(args) != len(inputs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        given = dict(zip(inputs, args))
        arguments, outputs, consumed = [], {}, None
        for number, (kind, parameter) in enumerate(rows):
            if number in counts:
                arguments.append(_type(kind)(len(arguments[-1])))
            elif number not in inputs:
                outputs[parameter] = _Output(kind)
                arguments.append(outputs[parameter].argument)
            elif _consumes(name, number, kind):
                consumed = given[number]
                cell = ctypes.c_void_p(consumed.pointer)
                arguments.append(ctypes.byref(cell))
            elif kind == "const struct rpma_work*" and number + 1 not in counts:
                arguments.append(ctypes.byref(given[number]))
            else:
                arguments.append(_input(kind, given[number]))
        ctypes.set_errno(0)
        code = called(*arguments)
        if consumed is not None:
            consumed.pointer = cell.value
        if result == "int":
            _check(code, name, outputs["posted"].value() if "posted" in outputs else None)
        values = [output.value() for output in outputs.values()]
        if result != "int":
            values.insert(0, code.decode() if isinstance(code, bytes) else code)
        return tuple(values) if len(values) > 1 else values[0] if values else None

    wrapper.__name__ = wrapper.__qualname__ = name.removeprefix("rpma_")
    wrapper.__signature__ = signature
    wrapper.__doc__ = f"{name}(3)"
    return wrapper


def _mr_reg(peer, buffer, usage):
    """rpma_mr_reg(3) of all bytes of a writable buffer"""
    memory = (ctypes.c_char * memoryview(buffer).nbytes).from_buffer(buffer)
    cell = ctypes.c_void_p()
    _check(_library.rpma_mr_reg(ctypes.c_void_p(peer.pointer), memory, ctypes.c_size_t(len(memory)), usage, ctypes.byref(cell)),
           "rpma_mr_reg")
    return _HANDLES["rpma_mr_local"](cell.value, memory)


def _descriptor(name):
    def wrapper(handle):
        data = ctypes.create_string_buffer(globals()[f"{name}_size".removeprefix("rpma_")](handle))
        _check(getattr(_library, name)(ctypes.c_void_p(handle.pointer), data), name)
        return data.raw
    wrapper.__doc__ = f"{name}(3)"
    return wrapper


def _from_descriptor(name, kind):
    def wrapper(desc):
        cell = ctypes.c_void_p()
        _check(getattr(_library, name)(bytes(desc), ctypes.c_size_t(len(desc)), ctypes.byref(cell)), name)
        return _HANDLES[kind](cell.value)
    wrapper.__doc__ = f"{name}(3)"
    return wrapper


def _cq_get_wc(cq, num_entries=1):
    """rpma_cq_get_wc(3): a list of 1 to num_entries Wc"""
    completions, got = (Wc * num_entries)(), ctypes.c_int()  # pylint: disable=undefined-variable
    _check(_library.rpma_cq_get_wc(ctypes.c_void_p(cq.pointer), num_entries, completions, ctypes.byref(got)), "rpma_cq_get_wc")
    return list(completions[:got.value])


def _pack(mrs, pcfg=None, data=b""):
    """rpma_conn_private_data_pack(3): the packed bytes"""
    regions = (ctypes.c_void_p * len(mrs))(*[mr.pointer for mr in mrs])
    room = ctypes.create_string_buffer(255)
    packed = ConnPrivateData(ctypes.addressof(room), 255)  # pylint: disable=undefined-variable
    _check(_library.rpma_conn_private_data_pack(regions, len(mrs), ctypes.c_void_p(pcfg.pointer if pcfg else None), bytes(data),
                                               len(data), ctypes.byref(packed)), "rpma_conn_private_data_pack")
    return room.raw[:packed.len]


def _unpack(pdata):
    """rpma_conn_private_data_unpack(3): ([MrRemote], PeerCfg or None, bytes)"""
    packed, count = _private_data(pdata), ctypes.c_uint32(255)
    mrs, pcfg = (ctypes.c_void_p * 255)(), ctypes.c_void_p()
    data, length = ctypes.c_void_p(), ctypes.c_uint32()
    _check(_library.rpma_conn_private_data_unpack(ctypes.byref(packed), mrs, ctypes.byref(count), ctypes.byref(pcfg),
                                                 ctypes.byref(data), ctypes.byref(length)), "rpma_conn_private_data_unpack")
    return ([_HANDLES["rpma_mr_remote"](mr) for mr in mrs[:count.value]],
            _HANDLES["rpma_peer_cfg"](pcfg.value) if pcfg.value else None, ctypes.string_at(data, length.value))


_BY_HAND = {
    "rpma_mr_reg": _mr_reg,
    "rpma_mr_get_descriptor": _descriptor("rpma_mr_get_descriptor"),
    "rpma_peer_cfg_get_descriptor": _descriptor("rpma_peer_cfg_get_descriptor"),
    "rpma_mr_remote_from_descriptor": _from_descriptor("rpma_mr_remote_from_descriptor", "rpma_mr_remote"),
    "rpma_peer_cfg_from_descriptor": _from_descriptor("rpma_peer_cfg_from_descriptor", "rpma_peer_cfg"),
    "rpma_cq_get_wc": _cq_get_wc,
    "rpma_conn_private_data_pack": _pack,
    "rpma_conn_private_data_unpack": _unpack,
}


def _bind():
    _library.rpma_err_2str.restype = ctypes.c_char_p
    if _last_failure:
        _last_failure.restype = ctypes.c_char_p
    for name, (_, rows) in declarations.FUNCTIONS.items():
        if name in _OMITTED or not hasattr(_library, name):
            continue
        function = _BY_HAND.get(name) or _function(name)
        globals()[name.removeprefix("rpma_")] = function
        kind = rows[0][0] if rows else ""
        if _is_output(kind) and not _consumes(name, 0, kind) or not _handle_of(kind) or re.search(_DELETING, name):
            continue
        owner = re.search(r"struct (\w+)", kind)[1]
        prefixes = (f"{owner}_", f"{re.sub('_(local|remote)$', '', owner)}_", "rpma_")
        setattr(_HANDLES[owner], name.removeprefix(next(prefix for prefix in prefixes if name.startswith(prefix))), function)


_bind()
__version__ = declarations.VERSION
