"""Connections between two nodes of a :class:`~snnc.frontends.dsl.network.Network`, under their public names."""

from __future__ import annotations

from snnc.frontends.dsl.connections.base import Connection as Connection
from snnc.frontends.dsl.connections.delays import UniformDelay as UniformDelay
from snnc.frontends.dsl.connections.dense import DenseConnection
from snnc.frontends.dsl.connections.elementwise import BatchNormConnection, FlattenConnection, OneToOneConnection
from snnc.frontends.dsl.connections.sparse import SparseConnection
from snnc.frontends.dsl.connections.windows import AvgPoolConnection, ConvConnection, MaxPoolConnection, SumPoolConnection

AvgPool = AvgPoolConnection
BatchNorm = BatchNormConnection
Conv = ConvConnection
Dense = DenseConnection
Flatten = FlattenConnection
MaxPool = MaxPoolConnection
OneToOne = OneToOneConnection
Sparse = SparseConnection
SumPool = SumPoolConnection
