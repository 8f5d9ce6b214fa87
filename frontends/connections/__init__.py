"""What can stand between two nodes of a :class:`~snnc.frontends.dsl.Network`: one kind a file."""

from __future__ import annotations

from snnc.frontends.connections.base import Connection as Connection
from snnc.frontends.connections.conv import Conv as Conv
from snnc.frontends.connections.delays import UniformDelay as UniformDelay
from snnc.frontends.connections.dense import Dense as Dense
from snnc.frontends.connections.flatten import Flatten as Flatten
from snnc.frontends.connections.one_to_one import OneToOne as OneToOne
from snnc.frontends.connections.pool import AvgPool as AvgPool
from snnc.frontends.connections.pool import MaxPool as MaxPool
from snnc.frontends.connections.pool import SumPool as SumPool
from snnc.frontends.connections.sparse import Sparse as Sparse
