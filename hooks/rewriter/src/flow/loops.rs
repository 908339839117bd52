//! Natural loops.

use super::block::LocalBlock;
use petgraph::algo::dominators;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{BTreeMap, BTreeSet};

/// A natural loop; blocks are counted from the function's first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalLoop {
    pub header: usize,
    pub blocks: BTreeSet<usize>,
    pub depth: u32,
}

/// The natural loops of a function, outer before inner: an edge back to a block that all ways to
/// it go through makes one. Loops with several ways in are none. Loops that begin with one block
/// are one loop.
pub fn loops(blocks: &[LocalBlock]) -> Vec<LocalLoop> {
    let edges = blocks.iter().enumerate().flat_map(|(from, block)| {
        block.successors.iter().map(move |(to, _)| (from as u32, *to as u32))
    });
    let mut graph: DiGraph<(), ()> = DiGraph::from_edges(edges);
    while graph.node_count() < blocks.len() {
        graph.add_node(());
    }
    if blocks.is_empty() {
        return Vec::new();
    }
    let dominators = dominators::simple_fast(&graph, NodeIndex::new(0));
    let mut bodies: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for edge in graph.raw_edges() {
        let (tail, header) = (edge.source(), edge.target());
        let is_back = dominators.dominators(tail).is_some_and(|mut own| own.any(|at| at == header));
        if !is_back {
            continue;
        }
        let body = bodies.entry(header.index()).or_default();
        body.insert(header.index());
        let mut open = vec![tail];
        while let Some(block) = open.pop() {
            if body.insert(block.index()) {
                open.extend(graph.neighbors_directed(block, petgraph::Direction::Incoming));
            }
        }
    }
    // A way into a body from unreachable code is none.
    for body in bodies.values_mut() {
        body.retain(|block| dominators.dominators(NodeIndex::new(*block)).is_some());
    }
    let mut loops: Vec<LocalLoop> = bodies
        .iter()
        .map(|(header, body)| {
            let around = bodies.values().filter(|other| other.contains(header));
            LocalLoop { header: *header, blocks: body.clone(), depth: around.count() as u32 }
        })
        .collect();
    loops.sort_by_key(|own| (own.depth, own.header));
    loops
}
