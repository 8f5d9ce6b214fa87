"""Connections between two nodes of a :class:`~snnc.frontends.dsl.network.Network`: one kind per file."""

from __future__ import annotations

from snnc.frontends.dsl.connections.base import Connection as Connection
from snnc.frontends.dsl.connections.conv import Conv as Conv
from snnc.frontends.dsl.connections.delays import UniformDelay as UniformDelay
from snnc.frontends.dsl.connections.dense import Dense as Dense
from snnc.frontends.dsl.connections.flatten import Flatten as Flatten
from snnc.frontends.dsl.connections.one_to_one import OneToOne as OneToOne
from snnc.frontends.dsl.connections.pool import AvgPool as AvgPool
from snnc.frontends.dsl.connections.pool import MaxPool as MaxPool
from snnc.frontends.dsl.connections.pool import SumPool as SumPool
from snnc.frontends.dsl.connections.sparse import Sparse as Sparse
