// Breadth-first search, level by level, over a graph in compressed sparse row format. Lanes whose
// node is on the frontier visit its neighbours; a second launch makes the nodes found the next
// frontier.

// Computes the first edge of each node from the degrees, and the first frontier. Only the first lane
// works.
__kernel void prepare(__global int *first, __global const int *degrees, __global int *cost,
                      __global int *frontier, __global int *visited, int nodes)
{
    if (get_global_id(0) != 0)
        return;
    int edge = 0;
    for (int node = 0; node < nodes; node++) {
        first[node] = edge;
        edge += degrees[node];
    }
    first[nodes] = edge;
    cost[0] = 0;
    frontier[0] = 1;
    visited[0] = 1;
}

__kernel void look(__global int *cost, __global int *frontier, __global int *found,
                   __global const int *visited, __global const int *first,
                   __global const int *edges)
{
    const int node = get_global_id(0);
    if (!frontier[node])
        return;
    frontier[node] = 0;
    for (int edge = first[node]; edge < first[node + 1]; edge++) {
        const int other = edges[edge];
        if (!visited[other]) {
            cost[other] = cost[node] + 1;
            found[other] = 1;
        }
    }
}

__kernel void advance(__global int *frontier, __global int *found, __global int *visited)
{
    const int node = get_global_id(0);
    if (!found[node])
        return;
    found[node] = 0;
    frontier[node] = 1;
    visited[node] = 1;
}
