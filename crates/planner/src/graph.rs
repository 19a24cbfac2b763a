//! Builds a job graph vertex by vertex, and numbers what is in it.
//!
//! Table ids of a job are allotted from its first one in this order, which never depends on
//! anything but the graph:
//!
//! | | |
//! |---|---|
//! | the view table          | of jobs that materialize |
//! | `"<name>$errors"`       | always |
//! | `"<name>$late"`         | of jobs that assign windows to rows of a source |
//! | the operators' tables   | in the order of vertices, chains and `OperatorSpec::state_tables` |

use std::sync::Arc;

use dataflow::TableId;
use dataflow::{
    JobGraph, JobVertex, OperatorId, OperatorNode, OperatorSpec, SideTables, StateTable, VertexId,
    VertexInput,
};
use operators::WindowAssign;

/// A graph in the making. A vertex only reads from vertices made before it.
#[derive(Debug, Default)]
pub(crate) struct GraphBuilder {
    vertices: Vec<JobVertex>,
}

/// Ids for the tables of one job.
#[derive(Debug)]
pub(crate) struct TableIds {
    first: u32,
    next: u32,
}

impl TableIds {
    pub(crate) fn from(first: u32) -> Self {
        Self { first, next: first }
    }

    pub(crate) fn allot(&mut self) -> TableId {
        self.next += 1;
        TableId(self.next - 1)
    }

    /// How many were allotted.
    pub(crate) fn count(&self) -> u32 {
        self.next - self.first
    }
}

impl GraphBuilder {
    /// Adds a vertex with an empty chain.
    pub(crate) fn vertex(&mut self, inputs: Vec<VertexInput>) -> VertexId {
        let id = VertexId(self.vertices.len() as u32);
        self.vertices.push(JobVertex { id, inputs, chain: Vec::new() });
        id
    }

    /// Adds an operator to the end of a chain.
    pub(crate) fn push(&mut self, vertex: VertexId, spec: impl OperatorSpec + 'static) {
        let node = OperatorNode { id: OperatorId(0), spec: Arc::new(spec), tables: Vec::new() };
        self.vertices[vertex.0 as usize].chain.push(node);
    }

    /// The last operator of a chain, if it is a `T`.
    pub(crate) fn last<T: 'static>(&self, vertex: VertexId) -> Option<&T> {
        self.vertices[vertex.0 as usize].chain.last()?.spec.as_any().downcast_ref()
    }

    /// Puts an operator in the place of the last one of a chain.
    pub(crate) fn replace_last(&mut self, vertex: VertexId, spec: impl OperatorSpec + 'static) {
        self.vertices[vertex.0 as usize].chain.pop();
        self.push(vertex, spec);
    }

    /// All operators so far.
    pub(crate) fn specs(&self) -> impl Iterator<Item = &dyn OperatorSpec> {
        self.vertices.iter().flat_map(|vertex| &vertex.chain).map(|node| node.spec.as_ref())
    }

    /// Numbers operators and tables. `ids` has given an id to the view table, if there is one.
    pub(crate) fn finish(mut self, ids: &mut TableIds) -> JobGraph {
        self.ask_for_origins();
        let errors = ids.allot();
        let assigns_windows = self.specs().any(|spec| spec.as_any().downcast_ref::<WindowAssign>().is_some());
        let late = assigns_windows.then(|| ids.allot());
        let nodes = self.vertices.iter_mut().flat_map(|vertex| &mut vertex.chain);
        for (number, node) in (0..).zip(nodes) {
            node.id = OperatorId(number);
            let tables = node.spec.state_tables();
            node.tables = tables.into_iter().map(|spec| StateTable { id: ids.allot(), spec }).collect();
        }
        JobGraph { vertices: self.vertices, side_tables: SideTables { late, errors } }
    }

    /// Sources stamp where rows come from only if an operator of the graph reads it.
    fn ask_for_origins(&mut self) {
        let needed = self.specs().any(OperatorSpec::needs_origin);
        for input in self.vertices.iter_mut().flat_map(|vertex| &mut vertex.inputs) {
            if let VertexInput::Relation { needs_origin, stored: None, .. } = input {
                *needs_origin = needed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dataflow::JobId;

    use super::*;

    #[test]
    fn tables_are_numbered_from_the_first_on() {
        let mut ids = TableIds::from(7);
        let view = ids.allot();
        let mut graph = GraphBuilder::default();
        let schema = Arc::new(arrow::datatypes::Schema::empty());
        graph.vertex(vec![VertexInput::Inbox { job: JobId(1), schema }]);
        let graph = graph.finish(&mut ids);
        assert_eq!(view, TableId(7));
        assert_eq!(graph.side_tables, SideTables { late: None, errors: TableId(8) });
        assert_eq!(ids.count(), 2);
    }
}
