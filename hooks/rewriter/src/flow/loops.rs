//! Natural loops.

use super::block::LocalBlock;
use petgraph::algo::dominators;
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::{BTreeMap, BTreeSet};

/// A natural loop. Indices of blocks are relative to the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalLoop {
    pub header: usize,
    pub blocks: BTreeSet<usize>,
    pub depth: u32,
}

/// The natural loops of a function, outer loops first. An edge to a block that dominates its source forms a
/// loop. Loops with the same header are merged. Irreducible loops are not reported.
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
        let is_back = dominators
            .dominators(tail)
            .is_some_and(|mut dominators| dominators.any(|dominator| dominator == header));
        if !is_back {
            continue;
        }
        let body = bodies.entry(header.index()).or_default();
        body.insert(header.index());
        let mut waiting = vec![tail];
        while let Some(block) = waiting.pop() {
            if body.insert(block.index()) {
                waiting.extend(graph.neighbors_directed(block, petgraph::Direction::Incoming));
            }
        }
    }
    // Unreachable predecessors do not belong to loops.
    for body in bodies.values_mut() {
        body.retain(|block| dominators.dominators(NodeIndex::new(*block)).is_some());
    }
    let mut loops: Vec<LocalLoop> = bodies
        .iter()
        .map(|(header, body)| {
            let containing = bodies.values().filter(|body| body.contains(header));
            LocalLoop { header: *header, blocks: body.clone(), depth: containing.count() as u32 }
        })
        .collect();
    loops.sort_by_key(|natural_loop| (natural_loop.depth, natural_loop.header));
    loops
}
