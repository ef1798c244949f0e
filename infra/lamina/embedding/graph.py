"""The encoder as an ONNX model. No converter is needed: the few messages of the format are written here.

Numbers in the messages are the field numbers of onnx.proto. Weights become 8 bits with one scale for each output;
activations are brought to 8 bits when it runs.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from lamina.embedding.packed import Packed, unpacked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

IR_VERSION = 8
OPSET = 17
FUSED = "com.microsoft"  # operators of onnxruntime itself
TYPES = {"float32": 1, "int8": 3, "int64": 7}
MOST_INT8 = 127.0


def encoder(packed: Packed) -> bytes:
    """A model from `x`, the summed embeddings of the tokens of one text, to `y`, the last state of each token."""
    graph = Graph()
    state = graph.node("LayerNormalization", ["x", *_norm(graph, packed, "emb.ln")], axis=-1, epsilon=packed.epsilon)
    for layer in range(packed.layers):
        state = _layer(graph, packed, f"l{layer}", state)
    graph.node("Identity", [state], "y")
    return graph.model("x", "y", packed.width)


def _layer(graph: Graph, packed: Packed, name: str, state: str) -> str:
    """Attention, then the feed-forward part, each added to what went in and normalised."""
    width = packed.width
    mixed = _dense(graph, packed, [f"{name}.q", f"{name}.k", f"{name}.v"], state, width)
    query, key, value = (f"{name}.{one}.out" for one in "qkv")
    graph.node("Split", [mixed, graph.tensor("thirds", _thirds(width))], query, key, value, axis=-1)
    heads = graph.node("MultiHeadAttention", [query, key, value], domain=FUSED, num_heads=packed.heads)
    attended = graph.node("Add", [_dense(graph, packed, [f"{name}.ao"], heads, width), state])
    state = graph.node(
        "LayerNormalization", [attended, *_norm(graph, packed, f"{name}.aln")], axis=-1, epsilon=packed.epsilon
    )
    inner = graph.node("Gelu", [_dense(graph, packed, [f"{name}.fi"], state, width)], domain=FUSED)
    outer = graph.node("Add", [_dense(graph, packed, [f"{name}.fo"], inner, packed.inner), state])
    return graph.node(
        "LayerNormalization", [outer, *_norm(graph, packed, f"{name}.oln")], axis=-1, epsilon=packed.epsilon
    )


def _dense(graph: Graph, packed: Packed, names: list[str], state: str, width: int) -> str:
    """The product of the state with some matrices of `width` columns side by side, and their biases."""
    import numpy as np

    rows = np.concatenate([unpacked(packed.blocks(f"{name}.w", width)) for name in names])
    scales = (np.abs(rows).max(axis=1) / MOST_INT8).astype(np.float32)
    scales[scales == 0] = 1
    weights = np.rint(rows / scales[:, None]).astype(np.int8).T
    bias = np.concatenate([packed.floats(f"{name}.b") for name in names])
    tensors = {"w": weights, "s": scales, "z": np.zeros((), dtype=np.int8), "b": bias}
    weight, scale, zero, offset = (graph.tensor(f"{names[0]}.{key}", one) for key, one in tensors.items())
    return graph.node("DynamicQuantizeMatMul", [state, weight, scale, zero, offset], domain=FUSED)


def _norm(graph: Graph, packed: Packed, name: str) -> list[str]:
    return [graph.tensor(f"{name}.{part}", packed.floats(f"{name}.{part}")) for part in "wb"]


def _thirds(width: int) -> NDArray[np.int64]:
    import numpy as np

    return np.full(3, width, dtype=np.int64)


class Graph:
    """Nodes and constants in the order in which they are said."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: dict[str, bytes] = {}

    def node(self, operator: str, inputs: list[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operation; the name of its first output."""
        outputs = outputs or (f"n{len(self._nodes)}",)
        message = b"".join(_bytes(1, name) for name in inputs) + b"".join(_bytes(2, name) for name in outputs)
        message += _bytes(4, operator) + b"".join(_attribute(*pair) for pair in attributes.items())
        self._nodes.append(_bytes(1, message + (_bytes(7, domain) if domain else b"")))
        return outputs[0]

    def tensor(self, name: str, value: NDArray[Any]) -> str:
        if name not in self._tensors:
            dims = b"".join(_int(1, size) for size in value.shape)
            kind = _int(2, TYPES[value.dtype.name])
            self._tensors[name] = _bytes(5, dims + kind + _bytes(8, name) + _bytes(9, value.tobytes()))
        return name

    def model(self, source: str, result: str, width: int) -> bytes:
        """The whole, from one input to one output of the shape (1, tokens, width)."""
        ends = _bytes(11, _value(source, width)) + _bytes(12, _value(result, width))
        graph = b"".join(self._nodes) + _bytes(2, "encoder") + b"".join(self._tensors.values()) + ends
        opsets = _bytes(8, _int(2, OPSET)) + _bytes(8, _bytes(1, FUSED) + _int(2, 1))
        return _int(1, IR_VERSION) + _bytes(7, graph) + opsets


def _value(name: str, width: int) -> bytes:
    shape = b"".join(_bytes(1, one) for one in (_int(1, 1), _bytes(2, "tokens"), _int(1, width)))
    return _bytes(1, name) + _bytes(2, _bytes(1, _int(1, TYPES["float32"]) + _bytes(2, shape)))


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, float):
        return _bytes(5, _bytes(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _int(20, 1))
    return _bytes(5, _bytes(1, name) + _int(3, value) + _int(20, 2))


def _bytes(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers are written as their complement
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
