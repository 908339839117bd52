//! `malloc` in kernels: memory comes from a heap that AMD's device libraries find through a hidden argument.

use flipwave_tests::{flipwave, to_values};
use std::fs;
use tempfile::TempDir;

/// Lists of nodes from `malloc`, which one kernel makes and another sums and frees, and large arrays.
const ALLOCATING: &str = r#"#include <hip/hip_runtime.h>
struct Node { Node *next; int value; };
extern "C" __global__ void make(Node **heads, int n) {
    int item = blockIdx.x * blockDim.x + threadIdx.x;
    Node *head = nullptr;
    for (int i = 0; i <= item % n; i++) {
        Node *node = (Node *)malloc(sizeof(Node));
        node->next = head;
        node->value = item + i;
        head = node;
    }
    heads[item] = head;
}
extern "C" __global__ void sum(Node **heads, int *sums) {
    int item = blockIdx.x * blockDim.x + threadIdx.x, total = 0;
    for (Node *node = heads[item]; node != nullptr;) {
        total += node->value;
        Node *next = node->next;
        free(node);
        node = next;
    }
    sums[item] = total;
}
extern "C" __global__ void large(int *sums, int n) {
    int item = blockIdx.x * blockDim.x + threadIdx.x, total = 0;
    int *numbers = (int *)malloc(n * sizeof(int));
    if (numbers == nullptr) {
        sums[item] = -1;
        return;
    }
    for (int i = 0; i < n; i++)
        numbers[i] = item + i % 2;
    for (int i = 0; i < n; i++)
        total += numbers[i];
    sums[item] = total;
}
"#;

fn allocating(target: &str, heap: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("lists.hip"), ALLOCATING).expect("a source");
    let launch = |name: &str, args: &str| {
        format!(
            "    - {{source: lists.hip, name: {name}, grid: 256, workgroup: 64, args: [{args}]}}\n"
        )
    };
    let text = format!(
        "name: lists\ntarget: {target}\nworkload:\n{heap}  dispatches:\n{}{}{}faults: {{model: \
         flip_one_bit, count: 40}}\n",
        launch("make", "{buffer: heads, type: u64, count: 256}, {scalar: 5, type: i32}"),
        launch("sum", "{buffer: heads}, {buffer: sums, type: i32, count: 256, output: true}"),
        launch(
            "large",
            "{buffer: large, type: i32, count: 256, output: true}, {scalar: 1000, type: i32}"
        ),
    );
    fs::write(folder.path().join("lists.yaml"), text).expect("a campaign file");
    folder
}

#[test]
fn device_side_malloc_works() {
    for target in ["gfx90a", "gfx1030", "gfx1100"] {
        let folder = allocating(target, "");
        let line = ["golden", "lists.yaml", "--out", "golden"];
        flipwave(folder.path(), &line, &[]).expect_success();
        let read =
            |name: &str| to_values::<i32>(&fs::read(folder.path().join(name)).expect("an output"));
        let sum = |item: i32| (0..=item % 5).map(|i| item + i).sum::<i32>();
        assert_eq!(read("golden/sums.bin"), (0..256).map(sum).collect::<Vec<_>>(), "{target}");
        let large = (0..256).map(|item| 1000 * item + 500).collect::<Vec<_>>();
        assert_eq!(read("golden/large.bin"), large, "{target}");
        let rows = |options: &[&str]| {
            let line = [&["run", "lists.yaml", "--force", "--out", "results"], options].concat();
            flipwave(folder.path(), &line, &[]).expect_success();
            fs::read_to_string(folder.path().join("results/results.csv")).expect("rows")
        };
        assert_eq!(rows(&["--workers", "1"]), rows(&["--workers", "2"]), "{target}");
    }
}

/// Nodes take a slab of 2 MiB, so that 256 arrays of a page each fit into two of them, but not into one.
#[test]
fn malloc_returns_null_if_the_heap_is_exhausted() {
    let folder = allocating("gfx90a", "  heap: 3145728\n");
    let line = ["golden", "lists.yaml", "--out", "golden"];
    flipwave(folder.path(), &line, &[]).expect_success();
    let large = fs::read(folder.path().join("golden/large.bin")).expect("an output");
    // Two slabs, of which one contains the nodes, and 512 pages for 256 arrays.
    for (item, sum) in (0..).zip(to_values::<i32>(&large)) {
        assert_eq!(sum, 1000 * item + 500);
    }
    let folder = allocating("gfx90a", "  heap: 2097152\n");
    flipwave(folder.path(), &line, &[]).expect_success();
    let large = fs::read(folder.path().join("golden/large.bin")).expect("an output");
    assert!(to_values::<i32>(&large).iter().all(|sum| *sum == -1));
}

/// A compiled kernel calls the host for large blocks; the error names `malloc`.
#[test]
fn malloc_that_calls_the_host_is_named() {
    let folder = allocating("gfx90a", "");
    let file = folder.path().join("lists.hip");
    fs::write(folder.path().join("lists.co"), flipwave_tests::compile_file(&file, &["-O3"]))
        .expect("written");
    let text = fs::read_to_string(folder.path().join("lists.yaml")).expect("the file");
    let text = text.replace("source: lists.hip", "code_object: lists.co");
    fs::write(folder.path().join("lists.yaml"), text).expect("written");
    let line = ["golden", "lists.yaml", "--out", "golden"];
    flipwave(folder.path(), &line, &[]).expect_refused(&["calls the host for", "`malloc`"]);
}
