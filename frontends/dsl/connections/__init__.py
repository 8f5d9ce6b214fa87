"""Connections between two nodes of a :class:`~snnc.frontends.dsl.network.Network`."""

from __future__ import annotations

from snnc.frontends.dsl.connections.base import Connection as Connection
from snnc.frontends.dsl.connections.delays import UniformDelay as UniformDelay
from snnc.frontends.dsl.connections.dense import Dense as Dense
from snnc.frontends.dsl.connections.elementwise import Flatten as Flatten
from snnc.frontends.dsl.connections.elementwise import OneToOne as OneToOne
from snnc.frontends.dsl.connections.normalising import BatchNorm as BatchNorm
from snnc.frontends.dsl.connections.sparse import Sparse as Sparse
from snnc.frontends.dsl.connections.windows import AvgPool as AvgPool
from snnc.frontends.dsl.connections.windows import Conv as Conv
from snnc.frontends.dsl.connections.windows import MaxPool as MaxPool
from snnc.frontends.dsl.connections.windows import SumPool as SumPool
